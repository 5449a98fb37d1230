//! One host, or all names below a domain, with the scheme and port by which requests go there.

use std::fmt;

use url::{Host, Url};

/// The most characters of a host's name, and of one part of it.
const LONGEST_NAME: usize = 253;
const LONGEST_PART: usize = 63;
/// What stands before a name that is spoken to without encryption.
const UNENCRYPTED: &str = "http://";
/// What a person may write before any other name.
const ENCRYPTED: &str = "https://";
/// The name of everything: all hosts, by both schemes, to all ports.
const EVERYTHING: &str = "*";

/// A host's name, `*.` and a domain, or `*`. All but the last one mean https and its port, unless they say otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::connectors) struct HostPattern {
    is_unencrypted: bool,
    name: String,
    port: Option<u16>,
}

impl HostPattern {
    /// An entry of a manifest, without templates.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (is_unencrypted, host) = without_scheme(text);
        let (name, port) = with_port(host)?;
        let domain = name.strip_prefix("*.").unwrap_or(name);
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
        let is_name = !domain.is_empty() && domain.bytes().all(allowed);
        (text == EVERYTHING || is_name).then(|| Self {
            is_unencrypted,
            name: name.to_owned(),
            port,
        })
    }

    /// What a person wrote: as in a manifest, and as URLs begin.
    pub(super) fn typed(text: &str) -> Option<Self> {
        let (is_unencrypted, host) = without_scheme(text);
        let host = host.strip_prefix(ENCRYPTED).unwrap_or(host);
        let (wildcard, host) = match host.strip_prefix("*.") {
            Some(domain) => ("*.", domain),
            None => ("", host),
        };
        if text == EVERYTHING {
            return Self::read(text);
        }
        let plain = Self::plain(host)?;
        Some(Self {
            is_unencrypted,
            name: format!("{wildcard}{}", plain.name),
            port: plain.port,
        })
    }

    /// A text that is one host and nothing else, in the form that URLs give hosts.
    pub(super) fn plain(text: &str) -> Option<Self> {
        let (name, port) = with_port(text)?;
        let allowed = |letter: char| letter.is_alphanumeric() || ".-_".contains(letter);
        let is_address = name.starts_with('[') && name.ends_with(']');
        if !is_address && !name.chars().all(allowed) {
            return None;
        }
        let host = Host::parse(name).ok()?;
        if let Host::Domain(domain) = &host {
            let mut parts = domain.split('.');
            let is_name =
                domain.len() <= LONGEST_NAME && parts.all(|part| (1..=LONGEST_PART).contains(&part.len()));
            is_name.then_some(())?;
        }
        Some(Self {
            is_unencrypted: false,
            name: host.to_string(),
            port,
        })
    }

    /// Where a URL leads.
    pub(super) fn of_url(url: &Url) -> Option<Self> {
        Some(Self {
            is_unencrypted: url.scheme() == "http",
            name: url.host_str()?.to_owned(),
            port: url.port(),
        })
    }

    /// Whether it permits requests to a URL.
    pub(super) fn permits(&self, url: &Url) -> bool {
        let port = self.port.unwrap_or(if self.is_unencrypted { 80 } else { 443 });
        let is_meant = url.scheme() == self.scheme() && url.port_or_known_default() == Some(port);
        self.name == EVERYTHING || self.names(url) && is_meant
    }

    /// Whether it names a URL's host, whatever the scheme and port.
    pub(super) fn names(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        match self.name.strip_prefix('*') {
            Some(domain) => host.ends_with(domain),
            None => host == self.name,
        }
    }

    /// Whether it says nothing against a URL's port.
    pub(super) fn may_be_at(&self, url: &Url) -> bool {
        self.port.is_none() || self.port == url.port_or_known_default()
    }

    /// Where requests to a URL's host go instead.
    pub(super) fn origin_at(&self, url: &Url) -> String {
        let host = url.host_str().unwrap_or_default();
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{host}{port}", self.scheme())
    }

    fn scheme(&self) -> &'static str {
        match self.is_unencrypted {
            true => "http",
            false => "https",
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unencrypted {
            formatter.write_str(UNENCRYPTED)?;
        }
        formatter.write_str(&self.name)?;
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}

fn without_scheme(text: &str) -> (bool, &str) {
    match text.strip_prefix(UNENCRYPTED) {
        Some(host) => (true, host),
        None => (false, text),
    }
}

/// The name, and the port when there is one; nothing when what stands there is no port.
fn with_port(text: &str) -> Option<(&str, Option<u16>)> {
    match text.rsplit_once(':') {
        Some((name, port)) if !text.ends_with(']') => {
            let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
            Some((name, Some(port.parse().ok().filter(|_| is_number)?)))
        }
        _ => Some((text, None)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn permits(pattern: &str, url: &str) -> bool {
        HostPattern::read(pattern)
            .unwrap()
            .permits(&Url::parse(url).unwrap())
    }

    #[test]
    fn requests_go_by_https_to_its_port_unless_an_entry_says_otherwise() {
        for (pattern, url, permitted) in [
            ("a.test", "https://a.test/", true),
            ("a.test", "https://a.test:443/", true),
            ("a.test", "http://a.test/", false),
            ("a.test", "http://a.test:443/", false),
            ("a.test", "https://a.test:8443/", false),
            ("a.test:443", "https://a.test/", true),
            ("a.test:443", "http://a.test/", false),
            ("a.test:8443", "https://a.test:8443/", true),
            ("a.test:8443", "https://a.test/", false),
            ("*.test", "https://a.test/", true),
            ("*.test", "http://a.test/", false),
            ("*.test:8443", "https://a.test:8443/", true),
            ("*.test:8443", "https://a.test/", false),
            ("http://a.test", "http://a.test/", true),
            ("http://a.test", "http://a.test:8080/", false),
            ("http://a.test", "https://a.test/", false),
            ("http://a.test:8080", "http://a.test:8080/", true),
            ("*", "http://a.test:8080/", true),
            ("*", "https://a.test/", true),
        ] {
            assert_eq!(permits(pattern, url), permitted, "{pattern} {url}");
        }
    }

    #[test]
    fn a_person_may_write_hosts_as_urls_begin() {
        for (typed, read) in [
            ("API.Example.com", "api.example.com"),
            ("https://api.example.com", "api.example.com"),
            ("*.Example.com:8443", "*.example.com:8443"),
            ("http://10.0.0.1:8080", "http://10.0.0.1:8080"),
            ("käse.test", "xn--kse-qla.test"),
            ("[::1]:8080", "[::1]:8080"),
            ("*", "*"),
        ] {
            assert_eq!(HostPattern::typed(typed).unwrap().to_string(), read, "{typed}");
        }
        for wrong in [
            "", "*.", "**", "http://", "http://*", "a/b", "a b", "a:x", "u@a", "*a.test", "a.*.test",
            "ftp://a",
        ] {
            assert!(HostPattern::typed(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn entries_of_manifests_are_written_exactly() {
        for wrong in [
            "",
            "http://",
            "http://*",
            "https://a.test",
            "A.test",
            "a.test/",
            "a.test:x",
            "*:1",
        ] {
            assert!(HostPattern::read(wrong).is_none(), "{wrong:?}");
        }
    }
}

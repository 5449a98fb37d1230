//! The page on an app for people who use it, made of its manifest: how to connect, what its modules take and give.
//!
//! Absent on purpose: where pages are kept.

mod connection;
mod markdown;
mod module;

use super::Apps;
use super::manifest::App;
use super::module::{Module, ModuleType};
use crate::native::Failure;
use markdown::{Table, code, codes, link, text};

/// What modules of a type are called together, in the order of the page.
const PARTS: [(ModuleType, &str); 3] = [
    (ModuleType::Trigger, "Triggers"),
    (ModuleType::Search, "Searches"),
    (ModuleType::Action, "Actions"),
];

impl App {
    /// The page on the app, as Markdown.
    pub fn page(&self) -> String {
        let mut blocks = vec![format!("# {}", text(&self.name))];
        blocks.extend(self.description.as_deref().map(text));
        blocks.push(self.summary());
        blocks.extend(self.connecting());
        blocks.extend(self.limits());
        for (module_type, title) in PARTS {
            let modules: Vec<&Module> = self.modules_of(module_type).collect();
            if !modules.is_empty() {
                blocks.push(format!("## {title}"));
                blocks.extend(modules.into_iter().flat_map(|module| self.described(module)));
            }
        }
        blocks.join("\n\n") + "\n"
    }

    fn summary(&self) -> String {
        let mut table = Table::new(&["", ""]);
        table.row([text("App"), code(&self.id)]);
        if !self.categories.is_empty() {
            table.row([text("Categories"), text(&self.categories.join(", "))]);
        }
        for (name, url) in [
            ("Website", &self.links.website),
            ("Its API", &self.links.documentation),
        ] {
            if let Some(url) = url {
                table.row([text(name), link(url)]);
            }
        }
        table.to_string()
    }

    fn connecting(&self) -> Vec<String> {
        let mut blocks = vec!["## Connect".to_owned()];
        match self.connections.is_empty() {
            true => blocks.push("There is nothing to connect: the app needs no credential.".to_owned()),
            false => blocks.extend(self.connections.iter().flat_map(connection::described)),
        }
        blocks.push("### Where credentials go".to_owned());
        if self.driver.is_some() {
            let said = "To the server that the credential names, and nowhere else; no `http_request` can send it. That server's \
                        address must be public, or one that the operator allows with `--outbound-allow`.";
            blocks.push(said.to_owned());
            return blocks;
        }
        blocks.push(self.hosts_described());
        blocks
    }

    fn hosts_described(&self) -> String {
        let hosts: Vec<_> = self.shown_hosts().collect();
        if hosts.iter().any(|host| host == "*") {
            return "Requests, and credentials with them, go to any host that they name.".to_owned();
        }
        let mut said = format!(
            "Requests, and credentials with them, go to {} only.",
            codes(hosts.iter().map(AsRef::as_ref))
        );
        if self.has_made_hosts() {
            said.push_str(" What stands in angle brackets is made of the value of that name.");
        }
        said
    }

    /// How often it may be called, and what failures are called.
    fn limits(&self) -> Vec<String> {
        let mut blocks = vec!["## Limits and failures".to_owned()];
        if let Some(rate) = self.rate_limit {
            blocks.push(format!(
                "With one credential, the app is called at most {} in {}. Further requests wait for their turn.",
                counted(u64::from(rate.requests), "time"),
                counted(u64::from(rate.seconds), "second"),
            ));
        }
        if let Some(retry) = self.retry {
            blocks.push(format!(
                "After a temporary failure a node tries again by itself: {} in all, the second after {} ms or when the \
                 service says, each further one after twice as long. The node's `config.retry` takes the place of this.",
                counted(u64::from(retry.max_attempts), "attempt"),
                retry.delay_ms,
            ));
        }
        blocks.push(match &self.driver {
            Some(_) => format!("Failures have the codes {}.", codes(Failure::CODES)),
            None => module::failures(self.errors.iter(), "Failures have the codes"),
        });
        blocks
    }

    fn modules_of(&self, module_type: ModuleType) -> impl Iterator<Item = &Module> {
        let modules = self.modules.iter();
        modules.filter(move |module| module.module_type == module_type)
    }
}

impl Apps {
    /// The table of all apps, as Markdown, with links to their pages beside it.
    pub fn index(&self) -> String {
        let mut table = Table::new(&["App", "What it is", "Triggers", "Searches", "Actions"]);
        let mut apps: Vec<_> = self.iter().collect();
        apps.sort_by_key(|app| app.name.to_lowercase());
        for app in apps {
            let name = format!("[{}]({}.md)", text(&app.name), app.id);
            let description = app.description.as_deref().map(text).unwrap_or_default();
            let counts = PARTS.map(|(module_type, _)| app.modules_of(module_type).count().to_string());
            table.row([name, description].into_iter().chain(counts));
        }
        format!(
            "# Apps\n\nThe apps that come with Switchyard. Each page is made of the app's manifest; \
             [connectors.md](../connectors.md) says how to write one, and `switchyard manifest page FILE` makes the page of \
             yours.\n\n{table}\n"
        )
    }
}

/// A number of things.
fn counted(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const HOSTILE: &str = r##"
manifest: 1
id: shop
name: "Shop | <script>alert(1)</script>"
description: "# Not a *title* & a [link](https://evil.test)\n\n- nor a list"
links: { website: "javascript:alert(1)" }
hosts: [api.shop.test]
baseUrl: https://api.shop.test
modules:
  - id: find
    label: Find `things`
    type: action
    description: Finds a_b and _c_.
    fields:
      - { name: word, label: "Word | words", type: text, pattern: "a|b`c", default: "a" }
      - { name: other, label: Other, type: text, default: "x|y" }
    request: { path: / }
  - id: called
    label: Called
    type: trigger
    description: Nobody listens.
    webhook: { verify: { type: none } }
"##;

    #[test]
    fn texts_cannot_change_the_page() {
        let page = App::read(HOSTILE).unwrap().page();
        for says in [
            "# Shop \\| \\<script\\>alert(1)\\</script\\>\n",
            "\n\\# Not a \\*title\\* & a \\[link\\](https://evil.test) - nor a list\n",
            "| Website | javascript:alert(1) |",
            "### Find \\`things\\`",
            "Finds a_b and \\_c\\_.",
            "**Word \\| words.**",
            "<code>a&#124;b&#96;c</code>",
            "<code>&#34;x&#124;y&#34;</code>",
        ] {
            assert!(page.contains(says), "{says} is not in\n{page}");
        }
    }

    #[test]
    fn a_trigger_that_is_called_says_who_enters_its_url() {
        let page = App::read(HOSTILE).unwrap().page();
        assert!(
            page.contains("Triggers") && page.contains("A person enters"),
            "{page}"
        );
        assert!(!page.contains("Asks the service"), "{page}");
    }
}

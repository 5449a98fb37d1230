//! Which addresses requests may go to: those of the public internet, and what the operator allows besides.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// IPv4 networks that are not globally reachable, by the registry of special-purpose addresses, and multicast.
const REFUSED_V4: [Ipv4Net; 16] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
    v4([255, 255, 255, 255], 32),
];

/// All that is handed out as global unicast. Loopback, link-local, unique local, multicast and the rest lie outside.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);
/// What is special inside [`GLOBAL_V6`]: protocol assignments (Teredo among them) and documentation.
const REFUSED_V6: [Ipv6Net; 3] = [
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];
const SIX_TO_FOUR: Ipv6Net = v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16);
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

const fn v4(octets: [u8; 4], length: u8) -> Ipv4Net {
    let [a, b, c, d] = octets;
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(segments: [u16; 8], length: u8) -> Ipv6Net {
    let [a, b, c, d, e, f, g, h] = segments;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), length)
}

/// Says of an address whether requests may go there. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AddressRules {
    allowed: Arc<[IpNet]>,
}

impl AddressRules {
    /// The public internet, and these networks.
    pub fn new(allowed: &[IpNet]) -> Self {
        Self {
            allowed: allowed.into(),
        }
    }

    /// Whether a connection may be opened to this address.
    pub fn permit(&self, address: IpAddr) -> bool {
        let meant = unmapped(address);
        let is_allowed = |address: &IpAddr| self.allowed.iter().any(|network| network.contains(address));
        is_public(meant) || is_allowed(&meant) || is_allowed(&address)
    }
}

/// The address that one of IPv6 stands for when it carries one of IPv4.
fn unmapped(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let [.., a, b, c, d] = v6.octets();
    let [_, _, e, f, g, h, ..] = v6.octets();
    match v6 {
        v6 if v6.to_ipv4_mapped().is_some() || NAT64.contains(&v6) => Ipv4Addr::new(a, b, c, d).into(),
        v6 if SIX_TO_FOUR.contains(&v6) => Ipv4Addr::new(e, f, g, h).into(),
        v6 => v6.into(),
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !REFUSED_V4.iter().any(|network| network.contains(&v4)),
        IpAddr::V6(v6) => GLOBAL_V6.contains(&v6) && !REFUSED_V6.iter().any(|network| network.contains(&v6)),
    }
}

/// Reads a network, `10.0.0.0/8`, or a single address.
///
/// # Errors
/// When it is neither, with a sentence for the operator.
pub fn network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let parsed = match text.contains('/') {
        true => text.parse().ok(),
        false => text.parse::<IpAddr>().ok().map(IpNet::from),
    };
    parsed.ok_or_else(|| format!("{text} is no network such as 127.0.0.0/8 and no address"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    fn permitted(rules: &AddressRules, address: &str) -> bool {
        rules.permit(address.parse().unwrap())
    }

    #[test]
    fn only_public_addresses_are_permitted() {
        let rules = AddressRules::new(&[]);
        for public in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.0.1",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:0101:0101::1",
        ] {
            assert!(permitted(&rules, public), "{public}");
        }
        for refused in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:c0a8:101::",
            "3fff::1",
            "4000::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!permitted(&rules, refused), "{refused}");
        }
    }

    #[test]
    fn the_operator_allows_more() {
        let rules = AddressRules::new(&[
            network("127.0.0.0/8").unwrap(),
            network(" 10.1.2.3 ").unwrap(),
            network("fd00::/8").unwrap(),
        ]);
        for allowed in ["127.0.0.1", "::ffff:127.9.9.9", "10.1.2.3", "fd12::1", "1.1.1.1"] {
            assert!(permitted(&rules, allowed), "{allowed}");
        }
        for refused in ["10.1.2.4", "::1", "192.168.0.1", "fe80::1"] {
            assert!(!permitted(&rules, refused), "{refused}");
        }
        for wrong in ["", "localhost", "10.0.0.0/33", "10.0.0/8", "::/129", "*"] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        /// What carries an IPv4 address is what that address is.
        #[test]
        fn carried_addresses_count(bits: u32, below: u64) {
            let rules = AddressRules::new(&[]);
            let v4 = Ipv4Addr::from(bits);
            let permitted = rules.permit(v4.into());
            let mapped = v4.to_ipv6_mapped();
            let nat64 = Ipv6Addr::from((0x0064_ff9b_u128 << 96) | u128::from(bits));
            let six_to_four = Ipv6Addr::from((0x2002_u128 << 112) | (u128::from(bits) << 80) | u128::from(below));
            for address in [mapped, nat64, six_to_four] {
                prop_assert_eq!(rules.permit(address.into()), permitted, "{}", address);
            }
        }

        /// The standard library calls none of the permitted addresses private.
        #[test]
        fn nothing_special_passes(bits: u32, wide: u128) {
            let rules = AddressRules::new(&[]);
            let v4 = Ipv4Addr::from(bits);
            let special = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast()
                || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified();
            prop_assert!(!(special && rules.permit(v4.into())), "{}", v4);
            let v6 = Ipv6Addr::from(wide);
            let special = v6.is_loopback() || v6.is_multicast() || v6.is_unspecified()
                || v6.is_unique_local() || v6.is_unicast_link_local();
            prop_assert!(!(special && rules.permit(v6.into())), "{}", v6);
        }
    }
}

//! The binary forms of PostgreSQL's types, as its `*_send` functions write them.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use jiff::civil::{self, Date, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};

/// Bytes that are not what their type says.
#[derive(Debug)]
pub struct Damaged;

/// Bytes that are read from the left.
#[derive(Clone, Copy)]
pub struct Bytes<'a>(&'a [u8]);

/// Microseconds from 1970 to the server's 2000.
const EPOCH_MICROS: i64 = 946_684_800_000_000;
const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

impl<'a> Bytes<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    pub fn text(self) -> Result<&'a str, Damaged> {
        std::str::from_utf8(self.0).map_err(|_| Damaged)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (array, rest) = self.0.split_first_chunk::<N>().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*array)
    }

    pub fn byte(&mut self) -> Result<u8, Damaged> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn int2(&mut self) -> Result<i16, Damaged> {
        self.array().map(i16::from_be_bytes)
    }

    pub fn int4(&mut self) -> Result<i32, Damaged> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn int8(&mut self) -> Result<i64, Damaged> {
        self.array().map(i64::from_be_bytes)
    }

    pub fn oid(&mut self) -> Result<u32, Damaged> {
        self.array().map(u32::from_be_bytes)
    }

    /// As many bytes as are announced in front of them; none for null.
    pub fn sized(&mut self) -> Result<Option<Self>, Damaged> {
        let Ok(length) = usize::try_from(self.int4()?) else {
            return Ok(None);
        };
        let (own, rest) = self.0.split_at_checked(length).ok_or(Damaged)?;
        self.0 = rest;
        Ok(Some(Self(own)))
    }
}

/// Groups of four decimal digits, the place of the first, and how many digits stand behind the point.
pub fn numeric(raw: &mut Bytes<'_>) -> Result<String, Damaged> {
    let (groups, weight, sign, scale) = (raw.int2()?, raw.int2()?, raw.array::<2>()?, raw.int2()?);
    match u16::from_be_bytes(sign) {
        0xc000 => return Ok("NaN".to_owned()),
        0xd000 => return Ok("Infinity".to_owned()),
        0xf000 => return Ok("-Infinity".to_owned()),
        _ => {}
    }
    let mut digits = Vec::new();
    for _ in 0..groups {
        digits.push(raw.int2()?);
    }
    let digit = |place: i32| {
        let index = usize::try_from(i32::from(weight) - place).ok();
        index.and_then(|index| digits.get(index)).copied().unwrap_or(0)
    };
    let mut text = if sign == [0x40, 0] {
        "-".to_owned()
    } else {
        String::new()
    };
    let whole = i32::from(weight.max(0));
    text.push_str(&digit(whole).to_string());
    for place in (0..whole).rev() {
        text.push_str(&format!("{:04}", digit(place)));
    }
    if scale > 0 {
        let scale = usize::try_from(scale).map_err(|_| Damaged)?;
        let groups = i32::try_from(scale.div_ceil(4)).map_err(|_| Damaged)?;
        let behind: String = (1..=groups)
            .map(|place| format!("{:04}", digit(-place)))
            .collect();
        text.push('.');
        text.push_str(behind.get(..scale).ok_or(Damaged)?);
    }
    Ok(text)
}

/// Microseconds since 2000, in UTC or in nobody's zone.
pub fn timestamp(micros: i64, has_zone: bool) -> Result<String, Damaged> {
    match micros {
        i64::MAX => return Ok("infinity".to_owned()),
        i64::MIN => return Ok("-infinity".to_owned()),
        _ => {}
    }
    let micros = micros.checked_add(EPOCH_MICROS).ok_or(Damaged)?;
    let instant = Timestamp::from_microsecond(micros).map_err(|_| Damaged)?;
    Ok(match has_zone {
        true => instant.to_string(),
        false => instant.to_zoned(TimeZone::UTC).datetime().to_string(),
    })
}

/// Days since 2000.
pub fn date(days: i32) -> Result<String, Damaged> {
    match days {
        i32::MAX => return Ok("infinity".to_owned()),
        i32::MIN => return Ok("-infinity".to_owned()),
        _ => {}
    }
    let span = 0.days().try_days(days).map_err(|_| Damaged)?;
    let date: Date = civil::date(2000, 1, 1).checked_add(span).map_err(|_| Damaged)?;
    Ok(date.to_string())
}

/// Microseconds since midnight, the next one included.
pub fn time(micros: i64) -> Result<String, Damaged> {
    if micros == MICROS_PER_DAY {
        return Ok("24:00:00".to_owned());
    }
    let time = Time::midnight().checked_add(SignedDuration::from_micros(micros));
    time.map(|time| time.to_string()).map_err(|_| Damaged)
}

/// Seconds west of UTC, as what stands behind a time.
pub fn zone(seconds_west: i32) -> String {
    let east = -i64::from(seconds_west);
    let (sign, seconds) = if east < 0 { ('-', -east) } else { ('+', east) };
    format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60)
}

/// An ISO 8601 duration, in the parts that the server keeps apart.
pub fn interval(micros: i64, days: i32, months: i32) -> String {
    let mut text = "P".to_owned();
    let part = |text: &mut String, amount: i64, letter: char| {
        if amount != 0 {
            let _ = write!(text, "{amount}{letter}");
        }
    };
    part(&mut text, i64::from(months / 12), 'Y');
    part(&mut text, i64::from(months % 12), 'M');
    part(&mut text, i64::from(days), 'D');
    let (seconds, rest) = (micros / MICROS_PER_SECOND, micros % MICROS_PER_SECOND);
    if micros != 0 {
        text.push('T');
        part(&mut text, seconds / 3600, 'H');
        part(&mut text, seconds / 60 % 60, 'M');
        if rest != 0 {
            let sign = if micros < 0 { "-" } else { "" };
            let fraction = format!("{:06}", rest.abs());
            let _ = write!(
                text,
                "{sign}{}.{}S",
                (seconds % 60).abs(),
                fraction.trim_end_matches('0')
            );
        } else {
            part(&mut text, seconds % 60, 'S');
        }
    }
    if text.len() == 1 { "PT0S".to_owned() } else { text }
}

/// An address, with the bits of its network unless it is one host's.
pub fn network(raw: &mut Bytes<'_>) -> Result<String, Damaged> {
    const FAMILY_V4: u8 = 2;
    let (family, bits, is_cidr, _length) = (raw.byte()?, raw.byte()?, raw.byte()?, raw.byte()?);
    let (address, all): (IpAddr, u8) = match family {
        FAMILY_V4 => (Ipv4Addr::from(raw.array::<4>()?).into(), 32),
        _ => (Ipv6Addr::from(raw.array::<16>()?).into(), 128),
    };
    Ok(match is_cidr == 0 && bits == all {
        true => address.to_string(),
        false => format!("{address}/{bits}"),
    })
}

pub fn hardware_address(raw: Bytes<'_>) -> String {
    let pairs: Vec<String> = raw.rest().iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(":")
}

/// Zeros and ones.
pub fn bits(raw: &mut Bytes<'_>) -> Result<String, Damaged> {
    let length = usize::try_from(raw.int4()?).map_err(|_| Damaged)?;
    let all: String = raw.rest().iter().map(|byte| format!("{byte:08b}")).collect();
    all.get(..length).map(str::to_owned).ok_or(Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_read_as_durations() {
        for (micros, days, months, expected) in [
            (0, 0, 0, "PT0S"),
            (0, 3, 14, "P1Y2M3D"),
            (3_661_000_000, 0, 0, "PT1H1M1S"),
            (500_000, 0, 0, "PT0.5S"),
            (-1_500_000, 0, 0, "PT-1.5S"),
            (-500_000, 1, 0, "P1DT-0.5S"),
            (90_000_001, 0, -1, "P-1MT1M30.000001S"),
        ] {
            assert_eq!(interval(micros, days, months), expected);
        }
    }

    #[test]
    fn damaged_bytes_are_no_values() {
        for bytes in [&[][..], &[0, 1], &[0, 2, 0, 1, 0, 0, 0, 0, 0, 1]] {
            assert!(numeric(&mut Bytes::new(bytes)).is_err());
        }
        assert!(Bytes::new(&[0, 0, 0, 9, 1]).sized().is_err());
        assert!(timestamp(i64::MAX - 1, true).is_err());
        assert!(bits(&mut Bytes::new(&[0, 0, 0, 9, 1])).is_err());
    }
}

//! serde for a nullable timestamp over REST: ISO-8601 in UTC with milliseconds, `2026-01-31T09:30:00.000Z`.

use pbjson_types::Timestamp;
use serde::{Deserialize, Deserializer, Serializer};

const SECONDS_A_DAY: i64 = 86_400;

pub(crate) fn serialize<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(time) = time else {
        return serializer.serialize_none();
    };
    let (year, month, day) = civil_date(time.seconds.div_euclid(SECONDS_A_DAY));
    let second = time.seconds.rem_euclid(SECONDS_A_DAY);
    serializer.collect_str(&format_args!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        time.nanos / 1_000_000
    ))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    Option::deserialize(deserializer)
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
fn civil_date(day: i64) -> (i64, i64, i64) {
    // Years are counted from March, so that the leap day is a year's last; eras are 400 years of 146,097 days.
    let from_march = day + 719_468;
    let (era, day_of_era) = (from_march.div_euclid(146_097), from_march.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_month)
}

//! Dates: what is read, time zones, calendar arithmetic, formats.

use crate::support::{check, failure};
use serde_json::json;

#[test]
fn dates_are_read_from_texts_and_epochs() {
    check(&[
        ("toTimestamp(1784799000000)", json!(1_784_799_000_000_i64)),
        ("toTimestamp($now)", json!(1_784_799_000_000_i64)),
        ("parseDate(\"2026-07-23\")", json!("2026-07-23T00:00:00.000Z")),
        (
            "parseDate(\"2026-07-23T10:00:00+02:00\")",
            json!("2026-07-23T08:00:00.000Z"),
        ),
        (
            "parseDate(\"2026-07-23 10:00:00\")",
            json!("2026-07-23T10:00:00.000Z"),
        ),
        (
            "parseDate(\"2026-07-23T10:00\"; null; \"America/New_York\")",
            json!("2026-07-23T14:00:00.000Z"),
        ),
        (
            "parseDate(\"2026-07-23T10:00:00.1239Z\")",
            json!("2026-07-23T10:00:00.123Z"),
        ),
        ("parseDate(0)", json!("1970-01-01T00:00:00.000Z")),
        ("addSeconds(-1; 0)", json!("1969-12-31T23:59:59.999Z")),
    ]);
    for wrong in [
        "\"yesterday\"",
        "\"\"",
        "null",
        "true",
        "1.5",
        "\"2026-02-30\"",
        "9223372036854775807",
    ] {
        assert!(
            failure(&format!("addDays({wrong}; 1)")).contains("must be a date"),
            "{wrong}"
        );
    }
    assert!(failure("formatDate(0; \"YYYY\"; \"Mars/Base\")").contains("no time zone \"Mars/Base\""));
}

#[test]
fn calendar_arithmetic_follows_the_zone() {
    check(&[
        // A day across the start of summer time is 23 hours.
        (
            "addDays(\"2026-03-28T12:00:00Z\"; 1; \"Europe/Berlin\")",
            json!("2026-03-29T11:00:00.000Z"),
        ),
        (
            "addDays(\"2026-03-28T12:00:00Z\"; 1)",
            json!("2026-03-29T12:00:00.000Z"),
        ),
        (
            "addHours(\"2026-03-29T00:30:00Z\"; 24)",
            json!("2026-03-30T00:30:00.000Z"),
        ),
        ("addMonths(\"2024-01-31\"; 1)", json!("2024-02-29T00:00:00.000Z")),
        ("addMonths(\"2026-03-31\"; -1)", json!("2026-02-28T00:00:00.000Z")),
        ("addYears(\"2026-07-23\"; -26)", json!("2000-07-23T00:00:00.000Z")),
        (
            "setHour(\"2026-07-23T00:30:00Z\"; 0; \"Asia/Tokyo\")",
            json!("2026-07-22T15:30:00.000Z"),
        ),
        ("setDay(\"2026-07-26\"; 1)", json!("2026-07-20T00:00:00.000Z")),
        (
            "setDay(\"2026-07-20\"; \"Sun\")",
            json!("2026-07-26T00:00:00.000Z"),
        ),
        ("setMonth(\"2026-07-23\"; 12)", json!("2026-12-23T00:00:00.000Z")),
        (
            "setMonth(\"2026-07-23\"; \"feb\")",
            json!("2026-02-23T00:00:00.000Z"),
        ),
        ("setYear(\"2026-07-23\"; 1)", json!("0001-07-23T00:00:00.000Z")),
    ]);
    for wrong in [
        "setDate(\"2026-02-01\"; 30)",
        "setHour(0; 24)",
        "setHour(0; -1)",
        "setHour(0; 9223372036854775807)",
        "setMonth(0; 13)",
        "setMonth(0; \"x\")",
        "setDay(0; 0)",
        "setYear(0; 99999)",
        "addDays(0; 9223372036854775807)",
        "addYears(0; 9000)",
        "addSeconds(0; 9223372036854775807)",
        "addHours(0; 9223372036854775807)",
    ] {
        let message = failure(wrong);
        assert!(
            message.contains("out of range") || message.contains(" is 1 "),
            "{wrong}: {message}"
        );
    }
}

#[test]
fn differences_count_whole_units() {
    check(&[
        (
            "dateDifference(\"2026-07-23T00:00:01Z\"; \"2026-07-23\")",
            json!(1000),
        ),
        (
            "dateDifference(\"2026-07-23\"; \"2026-07-24\"; \"hours\")",
            json!(-24),
        ),
        (
            "dateDifference(\"2026-07-23\"; \"2026-05-24\"; \"months\")",
            json!(1),
        ),
        (
            "dateDifference(\"2026-07-23\"; \"2026-05-23\"; \"month\")",
            json!(2),
        ),
        (
            "dateDifference(\"2026-07-23\"; \"2020-07-24\"; \"years\")",
            json!(5),
        ),
        (
            "dateDifference(\"2026-07-23T23:00:00Z\"; \"2026-07-22T23:30:00Z\"; \"days\")",
            json!(0),
        ),
        (
            "dateDifference(\"2026-07-23\"; \"2026-07-08\"; \"weeks\")",
            json!(2),
        ),
        (
            "dateDifference(\"2026-07-23T00:10:00Z\"; \"2026-07-23\"; \"minutes\")",
            json!(10),
        ),
        ("dateDifference(1000; 0; \"seconds\")", json!(1)),
        // 23 hours of wall clock make a day in Berlin.
        (
            "dateDifference(\"2026-03-29T22:00:00Z\"; \"2026-03-28T23:00:00Z\"; \"days\"; \"Europe/Berlin\")",
            json!(1),
        ),
    ]);
    assert!(failure("dateDifference(0; 0; \"fortnights\")").contains("unit"));
}

#[test]
fn formats() {
    let format = |format: &str| format!("formatDate(\"2026-07-03T09:05:07.045Z\"; \"{format}\")");
    for (tokens, expected) in [
        ("YYYY-MM-DD HH:mm:ss.SSS", "2026-07-03 09:05:07.045"),
        ("YY M D H h m s", "26 7 3 9 9 5 7"),
        ("dddd, MMMM Do", "Friday, July 3rd"),
        ("ddd MMM hh:mm A a", "Fri Jul 09:05 AM am"),
        ("Q E GGGG W WW", "3 5 2026 27 27"),
        ("Z ZZ z", "+00:00 +0000 UTC"),
        ("X x", "1783069507 1783069507045"),
        ("[YYYY] YYYY [", "YYYY 2026 ["),
        ("", ""),
        ("ÄÖ年", "ÄÖ年"),
    ] {
        assert_eq!(
            crate::support::value(&format(tokens)),
            json!(expected),
            "{tokens}"
        );
    }
    check(&[
        (
            "formatDate(\"2026-07-23T15:30:00Z\"; \"hh:mm A Z\"; \"Asia/Kolkata\")",
            json!("09:00 PM +05:30"),
        ),
        (
            "formatDate(\"2026-01-23T12:00:00Z\"; \"HH:mm Z z\"; \"America/New_York\")",
            json!("07:00 -05:00 EST"),
        ),
        ("formatDate(\"2026-07-23T00:00:00Z\"; \"h A\")", json!("12 AM")),
        ("formatDate(\"2026-07-23T12:00:00Z\"; \"h A\")", json!("12 PM")),
        (
            "map([1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 31]; d => formatDate(setDate(\"2026-07-01\"; d); \"Do\"))",
            json!([
                "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "23rd", "31st"
            ]),
        ),
    ]);
}

#[test]
fn parsing() {
    check(&[
        (
            "parseDate(\"3/7/2026\"; \"D/M/YYYY\")",
            json!("2026-07-03T00:00:00.000Z"),
        ),
        (
            "parseDate(\"July 3rd, 2026 9:05 PM\"; \"MMMM Do, YYYY h:mm A\")",
            json!("2026-07-03T21:05:00.000Z"),
        ),
        (
            "parseDate(\"12:00 am 2026\"; \"hh:mm a YYYY\")",
            json!("2026-01-01T00:00:00.000Z"),
        ),
        (
            "parseDate(\"20260703\"; \"YYYYMMDD\")",
            json!("2026-07-03T00:00:00.000Z"),
        ),
        (
            "parseDate(\"26-07\"; \"YY-MM\")",
            json!("2026-07-01T00:00:00.000Z"),
        ),
        ("parseDate(\"99\"; \"YY\")", json!("1999-01-01T00:00:00.000Z")),
        (
            "parseDate(\"Fri, 03 jul 2026 09:05:07 +0200\"; \"ddd, DD MMM YYYY HH:mm:ss ZZ\")",
            json!("2026-07-03T07:05:07.000Z"),
        ),
        (
            "parseDate(\"2026-07-03T09:05:07.045Z\"; \"YYYY-MM-DD[T]HH:mm:ss.SSSZ\")",
            json!("2026-07-03T09:05:07.045Z"),
        ),
        (
            "parseDate(\"1783069507\"; \"X\")",
            json!("2026-07-03T09:05:07.000Z"),
        ),
        (
            "parseDate(\"1783069507045\"; \"x\")",
            json!("2026-07-03T09:05:07.045Z"),
        ),
        // A local time that summer time skips is read with the offset before it.
        (
            "parseDate(\"2026-03-29 02:30\"; \"YYYY-MM-DD HH:mm\"; \"Europe/Berlin\")",
            json!("2026-03-29T01:30:00.000Z"),
        ),
    ]);
    for (wrong, words) in [
        ("parseDate(\"2026-13-01\"; \"YYYY-MM-DD\")", "no date that exists"),
        ("parseDate(\"2026-02-30\"; \"YYYY-MM-DD\")", "no date that exists"),
        ("parseDate(\"13 PM 2026\"; \"h A YYYY\")", "no date that exists"),
        ("parseDate(\"10:00\"; \"HH:mm\")", "no date that exists"),
        (
            "parseDate(\"2026/07\"; \"YYYY-MM\")",
            "`-` is wanted where it goes on with \"/07\"",
        ),
        (
            "parseDate(\"2026-07-03\"; \"YYYY-MM\")",
            "goes on after the format",
        ),
        ("parseDate(\"Julember\"; \"MMMM\")", "`MMMM` is wanted"),
        ("parseDate(\"ß\"; \"A\")", "`A` is wanted"),
        ("parseDate(\"\"; \"YYYY\")", "`YYYY` is wanted"),
        ("parseDate(\"3\"; \"Q\")", "`Q` is wanted"),
        ("parseDate(\"1ß\"; \"Do\")", "no date that exists"),
    ] {
        let message = failure(wrong);
        assert!(message.contains(words), "{wrong}: {message}");
    }
}

//! The ids of events in a stream of server-sent events.
//!
//! A server of this program writes `number.index`: the stored number of an event of the run, and the index of one of the events
//! that it becomes on the wire. So a release that words events differently does not shift the ids that clients remember. An
//! id without a dot, as older releases and other servers write it, is a plain number, and below every id with a dot.
//!
//! Both are one 64-bit number, in the order of the stream.

use std::fmt::{self, Write};

/// Marks an id with an index.
const INDEXED: u64 = 1 << 62;

const INDEX_BITS: u32 = 20;

/// The greatest number of an id with an index.
const MAX_NUMBER: u64 = (INDEXED >> INDEX_BITS) - 1;

/// The id of the first wire event of the event `number`; those of the others follow it.
pub const fn first_of(number: u64) -> u64 {
    let number = if number > MAX_NUMBER { MAX_NUMBER } else { number };
    INDEXED + (number << INDEX_BITS)
}

/// Reads an id; `None` if it has neither form.
pub fn parse(text: &str) -> Option<u64> {
    let Some((number, index)) = text.split_once('.') else {
        return text.parse().ok().filter(|id| *id < INDEXED);
    };
    let (number, index): (u64, u64) = (number.parse().ok()?, index.parse().ok()?);
    (number <= MAX_NUMBER && index < 1 << INDEX_BITS).then(|| first_of(number) + index)
}

/// Writes an id.
///
/// # Errors
/// When the output cannot be written.
pub fn write(id: u64, out: &mut impl Write) -> fmt::Result {
    // Without the machinery of format arguments: this runs for every event of every reader.
    if id < INDEXED {
        return decimal(id, out);
    }
    decimal((id - INDEXED) >> INDEX_BITS, out)?;
    out.write_char('.')?;
    decimal(id & ((1 << INDEX_BITS) - 1), out)
}

/// An id as text.
pub fn to_string(id: u64) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(id, &mut text);
    text
}

fn decimal(number: u64, out: &mut impl Write) -> fmt::Result {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    let mut rest = number;
    for (place, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        start = place;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let digits = digits.get(start..).unwrap_or_default();
    out.write_str(std::str::from_utf8(digits).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_were_written_and_in_order() {
        let zero = first_of(0);
        let ids = [0, 7, 1 << 40, zero, zero + 1, first_of(3), first_of(3) + 41, first_of(MAX_NUMBER) + 7];
        for id in ids {
            assert_eq!(parse(&to_string(id)), Some(id), "{}", to_string(id));
        }
        assert!(ids.is_sorted());
        assert_eq!(["0", "7", "3.41"].map(|text| to_string(parse(text).unwrap())), ["0", "7", "3.41"]);
    }

    #[test]
    fn other_texts_are_no_ids() {
        for text in ["", ".", "1.", ".1", "a", "1.2.3", "-1", "1.1048576", "9223372036854775808"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

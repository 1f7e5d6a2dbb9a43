//! Tests of `request`.

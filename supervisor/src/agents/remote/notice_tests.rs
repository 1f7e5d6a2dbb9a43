//! Tests of `notice`.

//! Tests of `form`.

//! Tests of `answer`.

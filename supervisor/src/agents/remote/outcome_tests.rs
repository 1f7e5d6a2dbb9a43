//! Tests of `outcome`.

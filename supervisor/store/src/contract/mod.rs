//! The rules that every backend keeps.

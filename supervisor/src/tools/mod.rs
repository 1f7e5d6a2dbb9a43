//! The tools that the supervisor runs itself.

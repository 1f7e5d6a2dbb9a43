//! What a person sees in an existing client of CAIPE: streams of the built supervisor, read the way the clients do it.

mod answers;
mod cards;
mod client;
mod failures;
mod names;
mod questions;
mod system;
mod view;
mod words;

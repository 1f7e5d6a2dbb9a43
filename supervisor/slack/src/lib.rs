//! The Slack bot: an A2A client of a supervisor.
mod api;
mod delivery;
mod settings;
mod store;
mod text;
mod transcript;

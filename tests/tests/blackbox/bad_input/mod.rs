//! Whatever comes in is answered with an error that says what is wrong and where; the process stays up and nobody
//! else notices.

mod examples;
mod files;
mod models;
mod requests;
mod tool_servers;

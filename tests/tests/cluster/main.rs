//! The definition of `CaipeSupervisor` on a real control plane.

mod definition;
mod examples;
mod rules;
mod upgrade;

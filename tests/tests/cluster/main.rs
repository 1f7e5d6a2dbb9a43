//! The definition of `CaipeSupervisor` on a real control plane.

mod definition;
mod rules;
mod upgrade;

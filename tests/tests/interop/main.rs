//! The official A2A SDKs and this implementation, each as client of the other, over the wire.

mod agents;
mod clients;
mod depth;
mod sdk_events;
mod servers;

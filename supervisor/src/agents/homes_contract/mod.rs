//! One suite over both homes: whatever an agent does, who delegates to it cannot tell where it lives. Each scenario
//! runs in this process and behind A2A, and must bring the same updates, the same outcome and the same wire events.

mod delegating;
mod scenarios;
mod wire;
mod worker;

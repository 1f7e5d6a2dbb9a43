// The first process of a container has no handler for SIGTERM but its own, and would be waited for in vain.
process.on("SIGTERM", () => process.exit(0));

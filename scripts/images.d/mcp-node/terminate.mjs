// The first process of a container ignores SIGTERM unless it has a handler.
process.on("SIGTERM", () => process.exit(0));

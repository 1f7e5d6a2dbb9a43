# syntax=docker/dockerfile:1
# Builds the supervisor and the operator as static programs with a container engine; `make image` needs none. There are two
# images:
#
#   supervisor         both programs and nothing else, for agents that are remote or speak MCP over HTTP, and for clusters;
#                      the same files, user and commands as the image of `make image`
#   supervisor-tools   with Node.js, Python, uv, git and the tool servers of the catalogue, for agents whose MCP servers run as
#                      local commands, and for the pods of the catalogue's tool servers (`defaults.toolsImage` of the chart)
#
#   docker build --target supervisor-tools -t caipe-supervisor .
#
# The supervisor listens on all addresses of the container, so it requires A2A_AUTH_SHARED_KEY; without a key it starts only
# with CAIPE_ALLOW_UNAUTHENTICATED=true. It writes only to /data and /tmp.
#
# UNTESTED with a container engine. A test compares this file with `make image`, which is tested.

FROM rust:1.95-alpine AS build
RUN apk add --no-cache build-base cmake perl linux-headers
WORKDIR /src
COPY . .
# Without it, the allocator contains its build time.
ENV SOURCE_DATE_EPOCH=0
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked -p caipe-supervisor -p caipe-operator --features caipe-supervisor/mimalloc && \
    cargo run --quiet --release --locked -p caipe-image -- \
      tree --supervisor target/release/caipe-supervisor --operator target/release/caipe-operator --out /out

# The stand-ins for the compose profile `test`. No other image contains them.
FROM build AS build-fixtures
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked -p caipe-fixtures -p caipe-fixture-model --no-default-features \
      --bin caipe-fixture-mcp --bin caipe-fixture-model && \
    mkdir /fixtures && cp target/release/caipe-fixture-mcp target/release/caipe-fixture-model /fixtures/

FROM scratch AS fixtures
COPY --from=build-fixtures /fixtures/ /usr/local/bin/
ENV PATH=/usr/local/bin
USER 65532:65532

FROM scratch AS supervisor
COPY --from=build /out/ /
LABEL org.opencontainers.image.title="caipe-operator" \
      org.opencontainers.image.description="CAIPE for Kubernetes: the operator, the supervisor that answers people over A2A, and its agents" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/caipe-io/caipe-operator"
ENV PATH=/usr/local/bin HOME=/tmp
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8000
ENTRYPOINT ["/usr/local/bin/caipe-supervisor"]
CMD ["serve", "--listen", "[::]:8000", "--data-dir", "/data"]

# The programs of the catalogue, from lock files with hashes.
FROM node:20-alpine AS tools
RUN apk add --no-cache bash git go python3 uv
COPY image/tools/ /src/
RUN /src/install /opt/caipe/tools

FROM node:20-alpine AS supervisor-tools
RUN apk add --no-cache git python3 uv && adduser -D -H -h /tmp -u 65532 caipe
COPY --from=tools /opt/caipe/tools /opt/caipe/tools
COPY --from=build /out/usr/local/bin/ /usr/local/bin/
COPY --from=build /out/etc/ssl/ /etc/ssl/
COPY --from=build --chown=65532:0 /out/data /data
ENV HOME=/tmp CAIPE_TOOLS_DIR=/opt/caipe/tools
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8000
ENTRYPOINT ["/usr/local/bin/caipe-supervisor"]
CMD ["serve", "--listen", "[::]:8000", "--data-dir", "/data"]

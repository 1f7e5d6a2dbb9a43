# syntax=docker/dockerfile:1
# The supervisor as one static binary. Two images:
#
#   supervisor         the binary and nothing else, for agents that are remote or speak MCP over HTTP
#   supervisor-tools   with Node.js, uv and git, for agents whose MCP servers run as local commands
#
#   docker build --target supervisor-tools -t caipe-supervisor .
#
# It listens on all addresses of the container, and therefore asks for A2A_AUTH_SHARED_KEY; without one it starts only
# with CAIPE_ALLOW_UNAUTHENTICATED=true.
#
# UNTESTED: no container engine was at hand where this was written; the binary itself is tested, on glibc.

FROM rust:1.95-alpine AS build
RUN apk add --no-cache build-base cmake perl linux-headers
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked -p caipe-supervisor && \
    install -D target/release/caipe-supervisor /out/usr/local/bin/caipe-supervisor && \
    ln -s caipe-supervisor /out/usr/local/bin/platform-engineer && \
    ln -s caipe-supervisor /out/usr/local/bin/platform-engineer-single && \
    install -d -o 65532 -g 65532 /out/data && install -d -m 1777 /out/tmp && \
    install -D /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ca-certificates.crt

FROM scratch AS supervisor
COPY --from=build /out/ /
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8000
ENTRYPOINT ["/usr/local/bin/caipe-supervisor"]
CMD ["serve", "--listen", "0.0.0.0:8000", "--data-dir", "/data"]

FROM node:20-alpine AS supervisor-tools
RUN apk add --no-cache git python3 uv
COPY --from=build /out/ /
ENV HOME=/tmp
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8000
ENTRYPOINT ["/usr/local/bin/caipe-supervisor"]
CMD ["serve", "--listen", "0.0.0.0:8000", "--data-dir", "/data"]

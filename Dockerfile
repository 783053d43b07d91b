# The same image as `make image` makes, for those who have a container engine: the same code fills it.
# docker buildx build --platform=linux/amd64,linux/arm64 … needs no emulation, since everything is fetched for the target.
# Nothing of this base is in the image: it only runs the build. Name a digest to pin it: debian:bookworm-slim@sha256:…
ARG DEBIAN_IMAGE=debian:bookworm-slim
FROM --platform=$BUILDPLATFORM $DEBIAN_IMAGE AS build
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates python3 python3-venv
WORKDIR /build
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN python3 -m venv /venv && /venv/bin/pip install --no-cache-dir --require-hashes --requirement=requirements/build.txt
COPY LICENSE README.md pyproject.toml ./
COPY release release
COPY src src
ARG VERSION
ARG COMMIT_HASH
ARG BUILD_DATE
ARG TARGETARCH
ARG DEBIAN_SNAPSHOT
ARG DEBIAN_SNAPSHOT_ARCHIVE
RUN /venv/bin/python -m release root --arch="${TARGETARCH:-$(dpkg --print-architecture)}" --into=/image

FROM scratch
ARG VERSION
ARG COMMIT_HASH
ARG BUILD_DATE
ARG SOURCE_URL
LABEL org.opencontainers.image.title="kube-node-ready" \
      org.opencontainers.image.description="Keeps workloads off a new Kubernetes node until the node has proved that its network works" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT_HASH" \
      org.opencontainers.image.created="$BUILD_DATE" \
      org.opencontainers.image.licenses="AGPL-3.0-only" \
      org.opencontainers.image.source="$SOURCE_URL"
COPY --from=build /image /
WORKDIR /
USER 1000:1000
ENTRYPOINT ["/kube-node-ready"]

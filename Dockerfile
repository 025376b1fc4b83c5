# docker build --target cpu -t warpzone .        # or --target cuda, for NVIDIA GPUs
# docker run --rm -v warpzone-data:/data -v warpzone-runs:/home/warpzone/runs warpzone train --preset quick
#
# No ROM and nothing made from one is in the image: the first start installs it into the volume /data
# (docker/start.sh). Nothing runs as root. docs/containers.md has the rest.

FROM python:3.12-slim-bookworm AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /dist .

FROM python:3.12-slim-bookworm AS base
# gcc translates the ROM's program at the first start; without it x86-64 emits, others interpret.
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 warpzone \
 && install -d -m 700 -o warpzone -g warpzone /data /home/warpzone/runs
ENV WARPZONE_DATA=/data/rom \
    WARPZONE_CACHE=/data/cache \
    PYTHONUNBUFFERED=1
COPY --from=build /dist /dist
COPY docker/start.sh /usr/local/bin/warpzone-start
VOLUME ["/data", "/home/warpzone/runs"]
WORKDIR /home/warpzone
EXPOSE 8765
HEALTHCHECK --interval=60s --timeout=30s --start-period=180s \
  CMD ["warpzone-start", "--healthy"]
ENTRYPOINT ["warpzone-start"]
CMD ["train", "--preset", "quick"]

FROM base AS cuda
# PyTorch's wheels bring CUDA with them; the host gives the driver (NVIDIA Container Toolkit).
ARG TORCH=torch>=2.6
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
# TORCH may pin a version; the wheel states what else it needs.
# hadolint ignore=DL3013
RUN python -m pip install --no-cache-dir "$TORCH" \
 && python -m pip install --no-cache-dir "$(ls /dist/*.whl)[train,dashboard,tensorboard,sweep]"
USER 1000

FROM base AS cpu
# TORCH_INDEX: PyTorch's index of wheels for CPUs makes the image several GB smaller.
ARG TORCH=torch>=2.6
ARG TORCH_INDEX=
# TORCH may pin a version; the wheel states what else it needs.
# hadolint ignore=DL3013
RUN python -m pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "$TORCH" \
 && python -m pip install --no-cache-dir "$(ls /dist/*.whl)[train,dashboard,tensorboard,sweep]"
USER 1000

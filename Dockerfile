# docker build -t warpzone . && docker run --rm -v "$PWD/out:/out" warpzone
FROM python:3.12-slim-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends g++ make \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /warpzone
COPY . .
RUN make setup
CMD [".venv/bin/warpzone", "play", "--script", "demo", "--stage", "1-1", "--out", "/out/demo.mp4"]

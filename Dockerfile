# mkdir -p out && docker build -t warpzone . && docker run --rm -v "$PWD/out:/out" warpzone
# Nothing in it runs as root: its user has the number 1000, and must be able to write to out/.
FROM python:3.12-slim-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends g++ make \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 warpzone \
 && install -d -o warpzone -g warpzone /warpzone /out
COPY --chown=warpzone:warpzone . /warpzone
USER warpzone
WORKDIR /warpzone
RUN make setup
CMD [".venv/bin/warpzone", "play", "--script", "demo", "--stage", "1-1", "--out", "/out/demo.mp4"]

# The program on Debian, with the bundled models. From the root of the repository:
#   docker build -t penelope .
#   docker run --rm penelope --help
#   docker run --rm -v "$PWD:/data:ro" penelope run -m /data/base.gguf -p "Name the capital of France."
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" penelope train -m base.gguf --method cot --data my-data --out run
# The service with the bundled demo model; addresses other than loopback need an API key:
#   docker run --rm -p 127.0.0.1:8080:8080 -e PENELOPE_API_KEY=secret penelope serve --host 0.0.0.0
FROM debian:12 AS build
RUN apt-get update && apt-get install --yes --no-install-recommends g++ cmake ninja-build pkg-config python3-pip ca-certificates \
    nlohmann-json3-dev libcli11-dev libpcre2-dev libutf8proc-dev libtomlplusplus-dev libssl-dev libedit-dev libcpp-httplib-dev libcurl4-openssl-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
# The preset builds for any x86-64 with AVX2: the image may run on another CPU than the one that builds it.
RUN cmake --preset package -G Ninja -DPENELOPE_MPI=off -DCMAKE_INSTALL_PREFIX=/usr/local \
    && cmake --build --preset package && cmake --install build/package --strip

FROM debian:12
RUN apt-get update && apt-get install --yes --no-install-recommends libpcre2-8-0 libutf8proc2 libtomlplusplus3 libssl3 libedit2 libcpp-httplib0.11 libcurl4 libgomp1 \
    && rm -rf /var/lib/apt/lists/* && useradd --system --no-create-home penelope
COPY --from=build /usr/local /usr/local
COPY models /usr/local/share/penelope/models
RUN ldconfig
USER penelope
ENV OMP_WAIT_POLICY=passive
WORKDIR /data
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["penelope"]
CMD ["--help"]

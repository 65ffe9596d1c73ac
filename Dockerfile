# The images of kafka-dt.
#
#   docker build --tag kafka-dt .                         the server: kafka-dt serve
#   docker build --tag kafka-dt-tests --target tests .    all of it: ZooKeeper and its Java, the Python clients, the tests
#   docker build --tag kafka-dt-clients --target clients .    the same with a JDK and kcat, for the tests with clients
#
# PYTHON_IMAGE is an image with Python 3.11 or newer and its venv; Debian with python3-venv does as well. BUILD_IMAGE has
# the same Python; with a C compiler and Python's headers the protocol is compiled, otherwise it is interpreted, and
# without binutils the server keeps the symbols of its packages (15 MB more).
ARG PYTHON_IMAGE=python:3.13-slim
ARG BUILD_IMAGE=python:3.13

# Everything that requirements.lock holds, and this package from its source.
FROM ${PYTHON_IMAGE} AS tests
RUN useradd --create-home --uid 10001 kafka-dt
COPY requirements.lock /src/
RUN python3 -m venv /opt/kafka-dt \
    && /opt/kafka-dt/bin/pip install --no-cache-dir --disable-pip-version-check \
        --require-hashes --requirement /src/requirements.lock
COPY --chown=kafka-dt . /src/
RUN /opt/kafka-dt/bin/pip install --no-cache-dir --disable-pip-version-check \
        --no-deps --no-build-isolation --editable /src/protocol --editable /src \
    && install --directory --owner=kafka-dt --mode=700 /var/lib/kafka-dt \
    && install --directory --owner=kafka-dt --mode=700 /etc/kafka-dt/secrets \
    && chown kafka-dt /src
ENV PATH=/opt/kafka-dt/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /src
USER 10001
VOLUME /var/lib/kafka-dt
CMD ["pytest", "tests/unit", "tests/integration"]

# The same with Java, its compiler and kcat, for the tests with real clients.
FROM tests AS clients
USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends default-jdk-headless kcat \
    && rm -rf /var/lib/apt/lists/* \
    && install --directory --owner=kafka-dt /home/kafka-dt/.cache
USER 10001

# The two wheels; a compiled one is of the Python that builds it.
FROM ${BUILD_IMAGE} AS wheels
COPY requirements-build.lock /src/
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --disable-pip-version-check \
        --require-hashes --requirement /src/requirements-build.lock
COPY pyproject.toml README.md LICENSE /src/
COPY protocol /src/protocol
COPY kafka_dt /src/kafka_dt
COPY ops/systemd /src/ops/systemd
RUN headers=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))') \
    && if command -v cc >/dev/null && [ -e "$headers/Python.h" ]; then export HATCH_BUILD_HOOKS_ENABLE=true; fi \
    && /opt/build/bin/pip wheel --no-cache-dir --disable-pip-version-check \
        --no-deps --no-build-isolation --wheel-dir /wheels /src/protocol /src

# What the server needs and no more: no pip, no symbols of compiled modules, no tests of packages.
FROM wheels AS build
COPY requirements-server.lock docker/trim.sh /src/
RUN python3 -m venv --without-pip /opt/kafka-dt \
    && /opt/build/bin/pip --python /opt/kafka-dt/bin/python install --no-cache-dir --disable-pip-version-check \
        --require-hashes --no-deps --requirement /src/requirements-server.lock \
    && /opt/build/bin/pip --python /opt/kafka-dt/bin/python install --no-cache-dir --disable-pip-version-check \
        --no-deps /wheels/*.whl \
    && sh /src/trim.sh /opt/kafka-dt

FROM ${PYTHON_IMAGE} AS server
RUN useradd --create-home --uid 10001 kafka-dt \
    && install --directory --owner=kafka-dt --mode=700 /etc/kafka-dt/secrets /etc/kafka-dt/cluster
COPY --from=build /opt/kafka-dt /opt/kafka-dt
COPY docker/make_secrets.py /opt/kafka-dt/
COPY docker/server.properties docker/kraft/gateway.properties /etc/kafka-dt/
ENV PATH=/opt/kafka-dt/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
EXPOSE 9092
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["kafka-dt", "health"]
ENTRYPOINT ["kafka-dt"]
CMD ["serve", "--config", "/etc/kafka-dt/server.properties"]

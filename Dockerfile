# One image for every role: `nearstream worker`, `nearstream topics create`, `nearstream doctor`, ...
# A digest in place of the tag pins the base: `docker buildx imagetools inspect python:3.12-slim` tells it.

FROM python:3.12-slim AS build
WORKDIR /source
# For signing in C; the image itself holds no compiler. Any version will do.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
 && python -m venv --without-pip /opt/nearstream \
 && pip --python /opt/nearstream/bin/python install --no-cache-dir /wheels/*.whl

FROM python:3.12-slim
RUN pip uninstall --yes --root-user-action ignore pip \
 && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin nearstream
COPY --from=build /opt/nearstream /opt/nearstream
# TMPDIR is the one place that is written to: with a read-only root, mount a tmpfs there.
ENV PATH=/opt/nearstream/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TMPDIR=/tmp
USER 10001:10001
ENTRYPOINT ["nearstream"]

# One image for every role: `nearstream worker`, `nearstream topics create`, `nearstream doctor`, ...
# To pin the base image, replace its tag by the digest that `docker buildx imagetools inspect python:3.12-slim` prints.

FROM python:3.12-slim AS build
WORKDIR /source
# The compiler builds the part that signs faster in C. Any version will do, and the final image has none.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
COPY . .
# What the lock names is fetched by its hash: `html`, `crawl` and `msk` are in the lock. Only what the chosen
# extras need is installed of it. Our own wheel is built with the newest setuptools.
ARG EXTRAS=html,crawl
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
 && pip wheel --no-cache-dir --no-deps --require-hashes --wheel-dir /wheels -r deploy/requirements.lock \
 && python -m venv --without-pip /opt/nearstream \
 && pip --python /opt/nearstream/bin/python install --no-cache-dir --no-index --find-links /wheels "nearstream[$EXTRAS]"

FROM python:3.12-slim
RUN pip uninstall --yes --root-user-action ignore pip \
 && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin nearstream
COPY --from=build /opt/nearstream /opt/nearstream
# A worker writes to TMPDIR only. With a read-only root file system, mount a tmpfs there.
ENV PATH=/opt/nearstream/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TMPDIR=/tmp
USER 10001:10001
ENTRYPOINT ["nearstream"]

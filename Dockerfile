# syntax=docker/dockerfile:1
# Images of nlp_retrieval, one target per set of extras: base (the default), dense, service, all. See docs/SERVICE.md.
#
#   docker build --target dense --tag nlp-retrieval:dense .

FROM python:3.11.14-slim-bookworm AS build
# an index with the builds of torch for CPUs makes dense, service and all several gigabytes smaller
ARG PIP_EXTRA_INDEX_URL=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PATH=/opt/venv/bin:$PATH
WORKDIR /src
RUN python -m venv /opt/venv
COPY pyproject.toml setup.cfg constraints.txt README.md LICENSE ./
COPY nlp_retrieval nlp_retrieval

FROM build AS build-base
RUN pip install --constraint constraints.txt .

FROM build AS build-dense
RUN pip install --constraint constraints.txt '.[dense,endpoint,signals]'

FROM build AS build-service
RUN pip install --constraint constraints.txt '.[dense,endpoint,signals,mcp]'

FROM build AS build-all
RUN pip install --constraint constraints.txt '.[all]'

FROM python:3.11.14-slim-bookworm AS runtime
RUN useradd --create-home --uid 10001 app && install --directory --owner app --group app /data
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 HF_HOME=/data/.cache/huggingface XDG_CACHE_HOME=/data/.cache
WORKDIR /data
USER 10001
ENTRYPOINT ["nlp-retrieval"]
CMD ["--help"]

FROM runtime AS dense
COPY --from=build-dense /opt/venv /opt/venv

FROM runtime AS service
COPY --from=build-service /opt/venv /opt/venv
EXPOSE 8000
HEALTHCHECK --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=3)"]
CMD ["serve", "/data/index", "--host", "0.0.0.0"]

FROM runtime AS all
COPY --from=build-all /opt/venv /opt/venv

FROM runtime AS base
COPY --from=build-base /opt/venv /opt/venv

# syntax=docker/dockerfile:1
# The image of nlp_retrieval: its command, by default serving /data/index on port 8000. See docs/SERVICE.md.
#
#   docker build --build-arg EXTRAS=service,dense --tag nlp-retrieval .

FROM python:3.11.14-slim-bookworm AS build
# extras of setup.cfg, between commas; empty for BM25 and benchmarks alone
ARG EXTRAS="dense,endpoint,signals,mcp,otel"
# an index with the builds of torch for CPUs makes the image several gigabytes smaller
ARG PIP_EXTRA_INDEX_URL=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PATH=/opt/venv/bin:$PATH
WORKDIR /src
RUN python -m venv /opt/venv
COPY pyproject.toml setup.cfg constraints.txt README.md LICENSE ./
COPY nlp_retrieval nlp_retrieval
RUN pip install --constraint constraints.txt ".${EXTRAS:+[${EXTRAS}]}"

FROM python:3.11.14-slim-bookworm AS runtime
RUN useradd --create-home --uid 10001 app && install --directory --owner app --group app /data /models
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 HF_HOME=/models/huggingface XDG_CACHE_HOME=/models/cache \
    DSPY_CACHEDIR=/models/dspy NLP_RETRIEVAL_HOST=0.0.0.0 NLP_RETRIEVAL_PORT=8000 NLP_RETRIEVAL_LOG_FORMAT=json
VOLUME /models
WORKDIR /data
USER 10001
EXPOSE 8000
HEALTHCHECK --start-period=120s CMD ["python", "-c", "import http.client, os, sys; asked = http.client.HTTPConnection('127.0.0.1', int(os.environ['NLP_RETRIEVAL_PORT']), timeout=5); asked.request('GET', '/readyz'); sys.exit(asked.getresponse().status != 200)"]
ENTRYPOINT ["nlp-retrieval"]
CMD ["serve", "/data/index"]

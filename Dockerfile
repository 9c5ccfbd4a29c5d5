# The service, light: it links, maps, verifies and serves, without torch and compiler.
#   docker build -t spacy-sapbert .
#   docker run -p 8080:8080 -v "$PWD/models/kb:/kb:ro" -v "$PWD/token.txt:/run/token:ro" spacy-sapbert
# A knowledge base as a layer: `FROM spacy-sapbert` and `COPY models/kb /kb`.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml setup.py README.md LICENSE ./
COPY spacy_sapbert spacy_sapbert
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir ".[serve,faiss]" && /venv/bin/pip uninstall --yes pip

FROM python:3.13-slim
COPY --from=build /venv /venv
RUN useradd --system --no-create-home --uid 10001 sapbert
USER sapbert
ENV PATH=/venv/bin:$PATH
VOLUME /kb
EXPOSE 8080
HEALTHCHECK --start-period=60s --interval=30s --timeout=5s CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8080/readyz', timeout=4)"]
CMD ["spacy-sapbert", "serve", "/kb", "--host", "0.0.0.0", "--token-file", "/run/token"]

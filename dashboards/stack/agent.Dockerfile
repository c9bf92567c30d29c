# The agent of the stack: Recallscope from a wheel in the build context `wheels`, or from the package index.
FROM python:3.13-slim
COPY --from=wheels . /wheels
# Of several wheels the newest version.
RUN wheel="$(find /wheels -maxdepth 1 -name 'recallscope-*.whl' | sort -V | tail -n 1)" && \
    pip install --no-cache-dir "${wheel:-recallscope}"
RUN useradd --create-home agent
USER agent
ENTRYPOINT ["recallscope"]

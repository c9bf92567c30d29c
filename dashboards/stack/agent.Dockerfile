# The agent of the stack: Recallscope from a wheel in the build context `wheels`, or from the package index.
FROM python:3.13-slim
COPY --from=wheels . /wheels
RUN pip install --no-cache-dir "$(ls /wheels/recallscope-*.whl 2>/dev/null || echo recallscope)"
RUN useradd --create-home agent
USER agent
ENTRYPOINT ["recallscope"]

"""Hooks of schemathesis: what can't be tried by requests of which each is to end."""

import schemathesis


@schemathesis.hook
def filter_query(context, query):
    """Streams that go on until the client goes."""
    return not query or query.get("follow") not in ("true", True)


@schemathesis.hook
def filter_headers(context, headers):
    return not headers or "event-stream" not in str(headers.get("Accept", ""))

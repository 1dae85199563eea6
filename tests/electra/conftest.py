"""Both bodies."""

import pytest


@pytest.fixture(params=["bert", "modern"])
def body(request: pytest.FixtureRequest) -> str:
    """Run the test with both bodies."""
    return request.param

"""Empty a store of the peers: build/peers/bin/python benchmarks/peers/clear.py URL"""

from __future__ import annotations

import sys


def main(url: str) -> None:
    if url.startswith("redis:"):
        from redis import Redis

        Redis.from_url(url).flushall()
        return
    from sqlalchemy import create_engine, text

    with create_engine(url).begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS apscheduler_jobs"))


if __name__ == "__main__":
    main(sys.argv[1])

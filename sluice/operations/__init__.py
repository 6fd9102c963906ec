"""What an administrator does with a whole installation: freeze it, export it, import into it, repair it.

These commands read and write the tables themselves, with the administrator's own rights (decision 0071). They run the
service's code, so they need the extra ``testing``.
"""

from __future__ import annotations

from sluice.testing import service

service.load()

"""`python -m services.scheduler`"""

from services import rpc
from services.scheduler.server import serve
from services.scheduler.settings import Settings

rpc.run(lambda stop: serve(Settings.from_env(), stop))

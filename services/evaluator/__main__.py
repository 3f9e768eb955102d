"""`python -m services.evaluator`"""

from services import rpc
from services.evaluator.server import main

rpc.run(main)

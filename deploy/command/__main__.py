"""`python -m deploy.command`"""

import sys

from deploy.command import main

sys.exit(main())

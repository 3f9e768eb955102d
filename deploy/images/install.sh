#!/bin/sh
# A step of the Dockerfile: installs the locked packages and the `touchstone` command into /opt/touchstone/venv, with the
# Python of the base. Nothing else stays: no pip, no cache.
set -eu

venv=/opt/touchstone/venv
app=/opt/touchstone/app
python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --require-hashes \
  --requirement /build/image.txt
"$venv/bin/python" -m pip uninstall --quiet --yes pip setuptools

site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
printf '%s\n' "$app" "$app/protos/gen" "$app/client" > "$site/touchstone.pth"
printf '%s\n' "#!$venv/bin/python" 'import sys' 'from deploy.command import main' 'sys.exit(main())' \
  > "$venv/bin/touchstone"
chmod +x "$venv/bin/touchstone"

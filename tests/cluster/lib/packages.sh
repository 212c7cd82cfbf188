# Debian packages and Python packages the cluster itself needs.
# shellcheck shell=bash

install_packages() {
  local wanted=(containerd runc containernetworking-plugins debootstrap iproute2 iptables openssl curl procps util-linux gcc libc6-dev) missing=() package
  for package in "${wanted[@]}"; do
    [[ $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) == *'ok installed'* ]] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]} ..."
  mkdir -p "$CACHE"
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } \
    >"$CACHE/apt.log" 2>&1 || { tail -n 20 "$CACHE/apt.log" >&2; die "apt-get failed: $CACHE/apt.log"; }; }

python_environment() { # prints the folder of a virtual environment with moto's S3 server and a YAML parser
  local requirements=$HERE/s3-requirements.txt folder
  folder=$CACHE/python/$({ cat "$requirements"; python3 --version; } | sha256sum | cut -c1-12)
  if [ ! -e "$folder/done" ]; then
    say "installing moto's S3 server ..."
    rm -rf "$folder"; python3 -m venv "$folder" || die "python3 -m venv does not work (package python3-venv?)"
    "$folder/bin/pip" install -q -r "$requirements" >&2
    touch "$folder/done"
  fi
  echo "$folder"; }

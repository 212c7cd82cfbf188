# Shared by every script here: names, folders, progress, and daemons known by a pid file.
# Source it; it must not start or change anything by itself.
# shellcheck shell=bash

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
REPOSITORY=$(cd "$HERE/../.." && pwd)
PRODUCT=metaflow-kubernetes-ext
NUMBER=${METAFLOW_KUBERNETES_EXT_CLUSTER_NUMBER:-0}           # 0 to 9: clusters of different numbers run side by side
NAME=$PRODUCT-$NUMBER                                         # network namespace, cgroup, CNI network
CACHE=${METAFLOW_KUBERNETES_EXT_CLUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/$PRODUCT/cluster}
STATE=${METAFLOW_KUBERNETES_EXT_CLUSTER_STATE:-/tmp/$PRODUCT-cluster-$NUMBER}
NETNS=/run/netns/$NAME
GATEWAY=10.24$NUMBER.0.1                                      # the bridge: API server, DNS and S3 as pods see them
SERVICE_IP=10.96.0.1                                          # the Service "kubernetes"
POD_NETWORK=10.24$NUMBER.0.0/24
NAMESPACE=metaflow                                            # where the product runs its tasks
NODE=node0
S3_PORT=5000
TASK_USER=metaflow-user
CONTAINERD=$STATE/run/containerd.sock

DEFAULT_KUBERNETES=v1.37.2

started_at=${started_at:-$EPOCHREALTIME}; export started_at
say() { # progress with the seconds since the script began
  local now=$EPOCHREALTIME
  printf '[%6.1f s] %s\n' "$(((${now/[.,]/} - ${started_at/[.,]/}) / 100000))e-1" "$*" >&2; }
die() { echo "ERROR: $*" >&2; exit 1; }
refuse() { echo "REAL CLUSTER NOT AVAILABLE: $*" >&2; exit 3; }

guard() { # this changes sysctls, cgroups and mounts: never on somebody's machine unasked
  [ "${ASKED:-}" = yes ] || [ "${METAFLOW_KUBERNETES_EXT_REAL_CLUSTER:-}" = 1 ] || [[ ${CI:-} =~ ^(true|1)$ ]] ||
    refuse "kubelet changes kernel settings of this machine; ask for it with --yes, METAFLOW_KUBERNETES_EXT_REAL_CLUSTER=1 or CI=true."
  [ "$(uname -s)" = Linux ] || refuse "it needs Linux."
  [ "$(id -u)" = 0 ] || refuse "it needs root."
  command -v go >/dev/null || refuse "it needs Go (1.26 or newer) to build Kubernetes."
  command -v apt-get >/dev/null || refuse "it needs Debian's packages (apt-get)."; }

in_netns() { nsenter --net="$NETNS" "$@"; } # not `ip netns exec`: that makes a new /sys without cgroups at each call
kubectl() { in_netns "$STATE/bin/kubectl" --kubeconfig "$STATE/kubeconfig/admin" "$@"; }
ctr() { command ctr -a "$CONTAINERD" -n k8s.io "$@"; }

# --- daemons: STATE/pid/NAME holds "pid starttime", so that a reused pid is never taken for ours ---
start_time() { local stat; stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1; stat=${stat##*) }; set -- $stat; echo "${20}"; }
alive() { # name
  local pid began
  read -r pid began 2>/dev/null <"$STATE/pid/$1" && [ -n "$began" ] && [ "$(start_time "$pid")" = "$began" ]; }
run() { # name, command...: start in the network namespace, detached; the command is kept for `component start`
  local name=$1; shift
  { echo '#!/usr/bin/env bash'; printf 'cd %q\nexec nsenter --net=%q' "$STATE" "$NETNS"; printf ' %q' "$@"; echo; } >"$STATE/command/$name"
  start "$name"; }
start() { # name: start again what `run` started once
  alive "$1" && return 0
  setsid bash "$STATE/command/$1" >>"$STATE/log/$1" 2>&1 </dev/null 9>&- &
  local pid=$!; disown
  echo "$pid $(start_time "$pid")" >"$STATE/pid/$1"; }
signal() { # signal, name
  local pid rest; alive "$2" && read -r pid rest <"$STATE/pid/$2" && kill "-$1" "$pid" 2>/dev/null || true; }
stop() { # names...: TERM all, then KILL what is left after 10 s
  local name i
  for name in "$@"; do signal TERM "$name"; done
  for name in "$@"; do
    for ((i = 0; i < 100; i++)); do alive "$name" || break; sleep 0.1; done
    signal KILL "$name"; rm -f "$STATE/pid/$name"
  done; }
wait_for() { # seconds, daemon it depends on ("" for none), what, command...: poll until the command succeeds
  local seconds=$1 daemon=$2 what=$3 i; shift 3
  for ((i = 0; i < seconds * 5; i++)); do
    "$@" >/dev/null 2>&1 && return 0
    [ -z "$daemon" ] || alive "$daemon" || { show_log "$daemon"; die "$daemon ended while waiting for: $what"; }
    sleep 0.2
  done
  [ -z "$daemon" ] || show_log "$daemon"
  die "$what: not within $seconds s"; }
show_log() { echo "--- last lines of $STATE/log/$1" >&2; tail -n 15 "$STATE/log/$1" >&2 || true; }

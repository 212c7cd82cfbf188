# One node that runs real containers: containerd and runc from Debian, our kubelet, bridge network, CoreDNS.
# shellcheck shell=bash

CGROUP_V1_CONTROLLERS="cpu cpuacct cpuset memory devices freezer blkio pids hugetlb net_cls net_prio perf_event systemd unified"
KUBELET_SYSCTLS="vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes"

cgroup_folders() { # the folders of our own cgroup, whether they exist or not: one per hierarchy
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo "/sys/fs/cgroup/$NAME"; return; fi
  local controller; for controller in $CGROUP_V1_CONTROLLERS; do
    [ ! -d "/sys/fs/cgroup/$controller" ] || [ -L "/sys/fs/cgroup/$controller" ] || echo "/sys/fs/cgroup/$controller/$NAME"; done
  [ ! -d /sys/fs/cgroup/cpu,cpuacct ] || echo "/sys/fs/cgroup/cpu,cpuacct/$NAME"; }

make_cgroup() { # all pods below one cgroup of our own, so that `down` can find every process of theirs
  local folder parent file controller
  for folder in $(cgroup_folders); do
    mkdir -p "$folder"; parent=$(dirname "$folder")
    for file in cpuset.cpus cpuset.mems; do # v1: a new cpuset is empty and takes no process
      [ ! -e "$parent/$file" ] || [ ! -e "$parent/cpuset.clone_children" ] || cat "$parent/$file" >"$folder/$file"; done
    # All pods together count as much as four busy processes: with the default, one, they starve beside a build.
    [ ! -e "$folder/cpu.shares" ] || echo 4096 >"$folder/cpu.shares"
    if [ -e "$parent/cgroup.controllers" ]; then # v2: children get a controller only when it is passed on
      for controller in $(cat "$parent/cgroup.controllers"); do echo "+$controller" >"$parent/cgroup.subtree_control" 2>/dev/null || true; done
      for controller in $(cat "$folder/cgroup.controllers"); do echo "+$controller" >"$folder/cgroup.subtree_control" 2>/dev/null || true; done
      [ ! -e "$folder/cpu.weight" ] || echo 400 >"$folder/cpu.weight"
    fi
  done; }

remember_sysctls() { # kubelet changes them; `down` puts them back
  [ -e "$STATE/sysctls" ] || sysctl $KUBELET_SYSCTLS 2>/dev/null >"$STATE/sysctls" || true; }

start_containerd() { # tar archives to import
  cat >"$STATE/cni/net/10-bridge.conflist" <<C
{"cniVersion": "1.0.0", "name": "$NAME", "plugins": [
 {"type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "ipMasq": false, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": "$STATE/cni/ipam", "ranges": [[{"subnet": "$POD_NETWORK"}]]}}]}
C
  # restrict_oom_score_adj: in a sandboxed machine runc may not lower it.
  cat >"$STATE/containerd.toml" <<C
version = 2
root = "$STATE/fast/containerd"
state = "$STATE/run/containerd"
[grpc]
  address = "$CONTAINERD"
[plugins."io.containerd.internal.v1.opt"]
  path = "$STATE/run/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$PAUSE_IMAGE"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$STATE/cni/net"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
C
  run containerd containerd --config "$STATE/containerd.toml" --log-level warn
  wait_for 20 containerd "containerd" ctr version; }

import_image() { # name, archive
  [[ $'\n'$(ctr images ls -q)$'\n' == *$'\n'"$1"$'\n'* ]] || ctr images import "$2" >"$STATE/log/import-$(basename "$2")" 2>&1 || die "ctr cannot import $2"; }

start_kubelet() {
  : >"$STATE/resolv.conf"
  # The bridge's CoreDNS is all the DNS there is. Explicit evictionHard: a build machine's disk is often fuller than the
  # defaults allow. failCgroupV1: many machines still have version 1. localStorageCapacityIsolation stays on because
  # Metaflow requests ephemeral-storage. Logs are rotated soon, so that a test sees it.
  cat >"$STATE/kubelet.yaml" <<C
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $GATEWAY
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $STATE/pki/ca.crt}}
authorization: {mode: AlwaysAllow}
readOnlyPort: 0
containerRuntimeEndpoint: unix://$CONTAINERD
cgroupDriver: cgroupfs
cgroupRoot: /$NAME
cgroupsPerQOS: true
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
clusterDNS: [$GATEWAY]
clusterDomain: cluster.local
resolvConf: $STATE/resolv.conf
evictionHard: {memory.available: 100Mi, nodefs.available: 1Gi, imagefs.available: 1Gi}
imageGCHighThresholdPercent: 100
makeIPTablesUtilChains: false
podLogsDir: $STATE/pod-logs
containerLogMaxSize: 512Ki
containerLogMonitorInterval: 3s
C
  run kubelet "$STATE/bin/kubelet" --config="$STATE/kubelet.yaml" --kubeconfig="$STATE/kubeconfig/kubelet" \
    --root-dir="$STATE/kubelet" --cert-dir="$STATE/kubelet/pki" --hostname-override="$NODE" --node-ip="$GATEWAY"; }

start_dns() { # no cache and ttl 1: a gang's names appear as its pods do; any other name does not exist
  # Two blocks: within one, template would come before kubernetes whatever the order here.
  cat >"$STATE/Corefile" <<C
cluster.local 10.in-addr.arpa {
  bind $GATEWAY
  errors
  log
  kubernetes {
    kubeconfig $STATE/kubeconfig/coredns coredns
    pods insecure
    ttl 1
  }
}
. {
  bind $GATEWAY
  errors
  log
  template ANY ANY {
    rcode NXDOMAIN
  }
}
C
  run coredns "$STATE/bin/coredns" -conf "$STATE/Corefile"; }

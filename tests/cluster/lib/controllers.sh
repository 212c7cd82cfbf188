# Controllers run as plain processes beside the cluster; their webhooks are reached at 127.0.0.1 by the API server.
# CRDs and webhooks come from the modules' own folders (kustomized, so with the published patches), never from copies.
# shellcheck shell=bash

install_manifests() { # tool, webhook port, webhooks to keep ("all" or names)
  local tool=$1 port=$2 folder=$STATE/manifests/$1; shift 2
  { if [ -e "$folder/config/components/crd" ]; then
      "$STATE/bin/kubectl" kustomize "$folder/config/components/crd"; echo ---
      "$STATE/bin/kubectl" kustomize "$folder/config/components/webhook"
    else cat "$folder"/config/crd/bases/*.yaml; fi
  } | "$STATE/python/bin/python" "$HERE/lib/manifests.py" "$tool" "$port" "$STATE/pki/ca.crt" "$@" |
    kubectl apply --server-side --force-conflicts -f - >"$STATE/log/install-$tool" 2>&1 || { show_log "install-$tool"; die "the manifests of $tool are refused"; }
  # Retried because `wait` itself gives up on an object that has no conditions yet.
  wait_for 60 kube-apiserver "the CRDs of $tool" kubectl wait --for=condition=Established --timeout=5s crd --all; }

start_jobset() {
  kubectl apply --server-side -f "$HERE/lib/podgroup.yaml" >/dev/null
  cat >"$STATE/jobset.yaml" <<C
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "127.0.0.1:8081"}
webhook: {host: 127.0.0.1, port: 9441, certDir: $STATE/pki/webhook}
clientConnection: {qps: 500, burst: 500}
C
  install_manifests jobset 9441 all
  run jobset env KUBECONFIG="$STATE/kubeconfig/jobset" "$STATE/bin/jobset-controller" --config "$STATE/jobset.yaml"
  wait_for 60 jobset "the JobSet controller" in_netns curl -sf http://127.0.0.1:8081/readyz; }

start_appwrapper() {
  install_manifests appwrapper 9443 all
  kubectl apply --server-side --force-conflicts -f - >/dev/null <<'C'
apiVersion: v1
kind: Namespace
metadata: {name: appwrapper-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: appwrapper-operator-config, namespace: appwrapper-system}
data:
  config.yaml: |
    appwrapper:
      autopilot: {monitorNodes: false, injectAntiAffinities: false}
    controllerManager:
      health: {bindAddress: "127.0.0.1:8083"}
      metrics: {bindAddress: "0"}
      leaderElection: false
    webhooksEnabled: false
C
  run appwrapper env KUBECONFIG="$STATE/kubeconfig/appwrapper" NAMESPACE=appwrapper-system \
    "$STATE/bin/appwrapper-controller" --config appwrapper-operator-config --zap-log-level=info
  wait_for 60 appwrapper "the AppWrapper controller" in_netns curl -sf http://127.0.0.1:8083/healthz; }

start_kueue() {
  # With certificates managed by us, Kueue wants a pair for its metrics in this very folder.
  mkdir -p /etc/kueue/metrics/certs; cp "$STATE"/pki/webhook/tls.* /etc/kueue/metrics/certs/
  cat >"$STATE/kueue.yaml" <<C
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {healthProbeBindAddress: "127.0.0.1:8084"}
metrics: {bindAddress: "127.0.0.1:0"}
webhook: {host: 127.0.0.1, port: 9444, certDir: $STATE/pki/webhook}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
clientConnection: {qps: 50, burst: 100}
# Long for pods that start at all, short for a test (tests/contract/test_kueue.py); a second time is the last one.
waitForPodsReady: {timeout: 40s, blockAdmission: false, requeuingStrategy: {backoffLimitCount: 1, backoffBaseSeconds: 1}}
integrations: {frameworks: [batch/job, jobset.x-k8s.io/jobset, workload.codeflare.dev/appwrapper]}
C
  # Only the webhooks of enabled frameworks: the others' would block pods. Kueue exits if its CRDs are not Established.
  # Visibility on demand would need an aggregated API server.
  install_manifests kueue 9444 job jobset appwrapper clusterqueue resourceflavor workload cohort
  run kueue "$STATE/bin/kueue-controller" --config "$STATE/kueue.yaml" --kubeconfig "$STATE/kubeconfig/kueue" --feature-gates=VisibilityOnDemand=false
  wait_for 60 kueue "Kueue" in_netns curl -sf http://127.0.0.1:8084/readyz
  wait_for 60 kueue "Kueue's webhooks" in_netns curl -sk https://127.0.0.1:9444/
  # A queue to start with; tests make further ones.
  wait_for 30 kueue "the queue" kubectl apply --server-side --force-conflicts -f - <<C
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: metaflow}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, ephemeral-storage]
    flavors:
    - name: default
      resources: [{name: cpu, nominalQuota: 4}, {name: memory, nominalQuota: 16Gi}, {name: ephemeral-storage, nominalQuota: 200Gi}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: metaflow, namespace: $NAMESPACE}
spec: {clusterQueue: metaflow}
C
}

start_kwok() { # number of nodes that only pretend; real pods keep away from them because of the taint
  local stages=$STATE/manifests/kwok/kustomize/stage
  for file in "$stages"/node/fast/node-initialize.yaml "$stages"/node/heartbeat-with-lease/node-*.yaml "$stages"/pod/general/pod-*.yaml; do
    cat "$file"; echo; echo ---; done >"$STATE/kwok.yaml"
  run kwok "$STATE/bin/kwok" --kubeconfig "$STATE/kubeconfig/kwok" --config "$STATE/kwok.yaml" --server-address 127.0.0.1:10247 \
    --manage-all-nodes=false --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake --node-lease-duration-seconds=40
  local i; for ((i = 0; i < $1; i++)); do cat <<C
---
apiVersion: v1
kind: Node
metadata:
  name: kwok-$i
  annotations: {kwok.x-k8s.io/node: fake, node.alpha.kubernetes.io/ttl: "0"}
  labels: {type: kwok, kubernetes.io/hostname: kwok-$i, kubernetes.io/os: linux, kubernetes.io/arch: amd64}
spec: {taints: [{key: kwok.x-k8s.io/node, value: fake, effect: NoSchedule}]}
status:
  allocatable: {cpu: "32", memory: 256Gi, pods: "110", ephemeral-storage: 1Ti}
  capacity: {cpu: "32", memory: 256Gi, pods: "110", ephemeral-storage: 1Ti}
C
  done | kubectl apply -f - >"$STATE/log/install-kwok"
  wait_for 60 kwok "the kwok nodes" kubectl wait --for=condition=Ready node -l type=kwok --timeout=5s; }

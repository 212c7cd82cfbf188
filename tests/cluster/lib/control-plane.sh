# etcd, kube-apiserver, kube-controller-manager, kube-scheduler.
# The controller manager keeps its default limit of 20 requests per second: it is what bounds big gangs in reality, too.
# shellcheck shell=bash

start_control_plane() {
  local pki=$STATE/pki configs=$STATE/kubeconfig minor=${kubernetes#v1.} gates=() served=()
  # Gangs of the scheduler's own, in the shape that they have from 1.37 on.
  if [ "${minor%%.*}" -ge 37 ]; then gates=(--feature-gates=GenericWorkload=true) served=(--runtime-config=scheduling.k8s.io/v1beta1=true); fi
  cat >"$STATE/audit.yaml" <<'A'
# Who asked what, one line each: tests count a client's requests in log/audit.jsonl.
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
A
  run etcd "$STATE/bin/etcd" --data-dir "$STATE/fast/etcd" --unsafe-no-fsync --log-level=warn \
    --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 \
    --listen-peer-urls=http://127.0.0.1:2380 --initial-advertise-peer-urls=http://127.0.0.1:2380 --initial-cluster=default=http://127.0.0.1:2380
  run kube-apiserver "$STATE/bin/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
    --bind-address=0.0.0.0 --secure-port=443 --advertise-address="$GATEWAY" --endpoint-reconciler-type=none \
    --service-cluster-ip-range=10.96.0.0/16 --allow-privileged=true \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --client-ca-file="$pki/ca.crt" \
    --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
    --kubelet-client-certificate="$pki/apiserver-to-kubelet.crt" --kubelet-client-key="$pki/apiserver-to-kubelet.key" \
    --kubelet-preferred-address-types=InternalIP \
    --service-account-issuer=https://kubernetes.default.svc \
    --service-account-signing-key-file="$pki/service-account.key" --service-account-key-file="$pki/service-account.pub" \
    "${gates[@]}" "${served[@]}" --audit-policy-file="$STATE/audit.yaml" --audit-log-path="$STATE/log/audit.jsonl" --audit-log-maxsize=200 --audit-log-maxbackup=1
  wait_for 120 kube-apiserver "the API server" kubectl get --raw /readyz
  run kube-controller-manager "$STATE/bin/kube-controller-manager" --kubeconfig="$configs/kube-controller-manager" \
    --authentication-kubeconfig="$configs/kube-controller-manager" --authorization-kubeconfig="$configs/kube-controller-manager" \
    "${gates[@]}" --bind-address=127.0.0.1 --leader-elect=false --use-service-account-credentials=true \
    --service-account-private-key-file="$pki/service-account.key" --root-ca-file="$pki/ca.crt"
  run kube-scheduler "$STATE/bin/kube-scheduler" --kubeconfig="$configs/kube-scheduler" \
    --authentication-kubeconfig="$configs/kube-scheduler" --authorization-kubeconfig="$configs/kube-scheduler" \
    "${gates[@]}" --bind-address=127.0.0.1 --leader-elect=false; }

# A certificate authority for this cluster, and one client certificate and kubeconfig per program and user.
# Each has its own name, so that the audit log tells them apart.
# shellcheck shell=bash

sign() { # file name, subject, extra extensions
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out "$1.crt" \
    -extfile <(printf 'extendedKeyUsage=serverAuth,clientAuth\n%s\n' "${3:-}") 2>/dev/null
  rm "$1.csr"; }

make_user() { # name, subject
  [ -e "$STATE/kubeconfig/$1" ] && return 0
  (cd "$STATE/pki" && sign "$1" "$2")
  cat >"$STATE/kubeconfig/$1" <<K
apiVersion: v1
kind: Config
clusters:
- name: $NAME
  cluster: {server: "https://$GATEWAY", certificate-authority-data: $(base64 -w0 "$STATE/pki/ca.crt")}
users:
- name: $1
  user: {client-certificate-data: $(base64 -w0 "$STATE/pki/$1.crt"), client-key-data: $(base64 -w0 "$STATE/pki/$1.key")}
contexts:
- name: $1
  context: {cluster: $NAME, user: $1, namespace: $NAMESPACE}
current-context: $1
K
}

make_certificates() {
  if [ ! -e "$STATE/pki/done" ]; then
    (cd "$STATE/pki"
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -keyout ca.key -out ca.crt -subj "/CN=$NAME" 2>/dev/null
      openssl genrsa -out service-account.key 2048 2>/dev/null
      openssl rsa -in service-account.key -pubout -out service-account.pub 2>/dev/null
      sign apiserver /CN=kube-apiserver "subjectAltName=IP:127.0.0.1,IP:$SERVICE_IP,IP:$GATEWAY,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
      sign apiserver-to-kubelet /O=system:masters/CN=kube-apiserver
      sign webhook /CN=webhook 'subjectAltName=IP:127.0.0.1'
      mkdir -p webhook; cp webhook.crt webhook/tls.crt; cp webhook.key webhook/tls.key
      touch "done")
  fi
  make_user admin /O=system:masters/CN=admin
  make_user "$TASK_USER" "/O=metaflow/CN=$TASK_USER"
  make_user kube-controller-manager /CN=system:kube-controller-manager
  make_user kube-scheduler /CN=system:kube-scheduler
  make_user kubelet "/O=system:nodes/CN=system:node:$NODE"
  local controller
  for controller in coredns jobset kueue appwrapper kwok; do make_user "$controller" "/O=system:masters/CN=$controller"; done; }

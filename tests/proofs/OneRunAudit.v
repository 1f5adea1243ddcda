(* Auditing in one run: machine-checked proof of the theorems of docs/theorems/one-run-audit, for finite sets of outputs.

   The page's objects and their names here:
     s, t                        secrets m, the list of all words of m bits; a ticket has a guess or no guess for each canary
     M(s)                        mechanism m outputs M; guess takes the ticket from the output (guess_rule: exactly r guesses)
     (eps, delta)-private        private_in_each: the sum of the positive parts of M(s) - e^eps M(s'), s' = flip i s, for every s and i
     v or more right             success, with every canary in with probability 1/2
     C(m, r)                     C of the standard library in the statements; choose, by Pascal's rule and 0 outside, in the proofs
     q, beta, b                  q_of eps, tail r v q, binomial r q v (StrongerClones); in the proofs q, beta
     P*                          P_star, the minimum of 1 and formula
     N_h, A_h, w_h               below, above, weight; k is r - v, n is r - 1

   The page's steps and the theorems:
     two ways of counting        wrongs h is P_h; wrongs_right, wrongs_wrong count the triples; wrongs_private is (1), wrongs_total the sum 1
     summation by parts          beta_balance, weight_next, by_parts
     two rows of the triangle    cross_up, cross_down; below_up, above_down, weight_range
     the maximum                 price, price_value: it is (r / v) beta (1 - beta) / b
     the upper bound             symmetrized_upper, one_run_symmetrized (p and eps of any sign), one_run_upper
     it is attained              best; best_total, best_private, best_back (the other order costs nothing), best_goal,
                                 one_run_symmetrized_attained; as a mechanism: attaining, sum_tickets, sum_tickets_flip
     Theorem 1                   one_run_audit
     P* does not decrease        P_star_monotone (in eps, delta and r; not increasing in v)
     P* as a p-value             one_run_p_value
     301/320                     page_example
     at most r guesses           one_run_at_most
     Theorem 2, any profile      any_profile
     Theorem 3                   different_canaries, for all rates; exact at rates 1/2 if all are guessed:
                                 different_canaries_half, different_canaries_attained

   e^eps >= 1 is used only where a bound is attained and in P_star_monotone. Compile WorstDataset.v and StrongerClones.v first, in the same folder. *)
From Coq Require Import Reals List Arith Lia Lra Psatz Bool.
Require Import WorstDataset StrongerClones.
Import ListNotations.
Open Scope R_scope.

(** * Binomial coefficients *)
Fixpoint choose (n k : nat) : R :=
  match n, k with
  | _, O => 1
  | O, S _ => 0
  | S n', S k' => choose n' k' + choose n' (S k')
  end.

Lemma choose_0 n : choose n 0 = 1.
Proof. destruct n; reflexivity. Qed.
Lemma choose_S n k : choose (S n) (S k) = choose n k + choose n (S k).
Proof. reflexivity. Qed.
Lemma choose_nonneg n : forall k, 0 <= choose n k.
Proof. induction n; intros [| k]; simpl; try lra. pose proof (IHn k). pose proof (IHn (S k)). lra. Qed.
Lemma choose_large n : forall k, (n < k)%nat -> choose n k = 0.
Proof. induction n; intros [| k] H; simpl; try lia; try lra. rewrite !IHn by lia. lra. Qed.
Lemma choose_pos n : forall k, (k <= n)%nat -> 0 < choose n k.
Proof.
  induction n; intros [| k] H; simpl; try lia; try lra.
  pose proof (IHn k ltac:(lia)). pose proof (choose_nonneg n (S k)). lra.
Qed.
Lemma choose_next n : forall k, INR (S k) * choose n (S k) = (INR n - INR k) * choose n k.
Proof.
  induction n; intros [| k].
  - simpl. ring.
  - simpl choose. ring.
  - rewrite choose_S. pose proof (IHn 0%nat) as H. rewrite !choose_0 in *. rewrite !S_INR in *. simpl INR in *. lra.
  - rewrite (choose_S n (S k)), (choose_S n k). pose proof (IHn k) as H1. pose proof (IHn (S k)) as H2.
    rewrite !S_INR in *. nra.
Qed.
Lemma choose_row n k : INR (S n) * choose n k = (INR (S n) - INR k) * choose (S n) k.
Proof.
  destruct k as [| k]; [rewrite !choose_0; simpl INR; ring |].
  rewrite choose_S. pose proof (choose_next n k) as H. rewrite !S_INR in *. nra.
Qed.
Lemma choose_column n k : INR (S k) * choose (S n) (S k) = INR (S n) * choose n k.
Proof. rewrite choose_S. pose proof (choose_next n k) as H. rewrite !S_INR in *. nra. Qed.

Lemma C_0 n : C n 0 = 1.
Proof. unfold C. rewrite Nat.sub_0_r. simpl fact. simpl (INR 1). field. apply INR_fact_neq_0. Qed.
Lemma C_n n : C n n = 1.
Proof. unfold C. rewrite Nat.sub_diag. simpl (fact 0). simpl (INR 1). field. apply INR_fact_neq_0. Qed.
Lemma choose_C n : forall k, (k <= n)%nat -> choose n k = C n k.
Proof.
  induction n; intros [| k] H; try lia.
  - rewrite C_0. reflexivity.
  - rewrite C_0. reflexivity.
  - rewrite choose_S. destruct (Nat.eq_dec k n) as [-> |].
    + rewrite (choose_large n (S n)) by lia. rewrite IHn by lia. rewrite !C_n. ring.
    + rewrite !IHn by lia. apply pascal. lia.
Qed.
Lemma choose_mirror n k : (k <= n)%nat -> choose n (n - k) = choose n k.
Proof. intro H. rewrite !choose_C by lia. symmetry. apply pascal_step1. exact H. Qed.

(** The quotient of neighbours in row n + 1 against the quotient of neighbours in row n: this replaces log-concavity. *)
Lemma cross_up n i h : (i <= h)%nat -> choose (S n) i * choose n (S h) <= choose (S n) (S i) * choose n h.
Proof.
  intro H. destruct (le_lt_dec h n) as [Hn | Hn].
  - pose proof (choose_next (S n) i) as H1. pose proof (choose_next n h) as H2.
    pose proof (choose_nonneg (S n) i) as P1. pose proof (choose_nonneg n h) as P2.
    assert (Hi : INR i <= INR h) by (apply le_INR; lia). assert (Hh : INR h <= INR n) by (apply le_INR; lia).
    pose proof (pos_INR i) as P3. pose proof (pos_INR h) as P4. rewrite !S_INR in *.
    apply Rmult_le_reg_l with ((INR i + 1) * (INR h + 1)); [nra |].
    replace ((INR i + 1) * (INR h + 1) * (choose (S n) i * choose n (S h)))
      with ((INR i + 1) * choose (S n) i * ((INR h + 1) * choose n (S h))) by ring.
    replace ((INR i + 1) * (INR h + 1) * (choose (S n) (S i) * choose n h))
      with (((INR i + 1) * choose (S n) (S i)) * ((INR h + 1) * choose n h)) by ring.
    rewrite H1, H2.
    replace ((INR i + 1) * choose (S n) i * ((INR n - INR h) * choose n h))
      with ((choose (S n) i * choose n h) * ((INR i + 1) * (INR n - INR h))) by ring.
    replace ((INR n + 1 - INR i) * choose (S n) i * ((INR h + 1) * choose n h))
      with ((choose (S n) i * choose n h) * ((INR n + 1 - INR i) * (INR h + 1))) by ring.
    apply Rmult_le_compat_l; nra.
  - rewrite (choose_large n h), (choose_large n (S h)) by lia. lra.
Qed.
Lemma cross_down n i h : (S h <= i)%nat -> choose (S n) (S i) * choose n h <= choose (S n) i * choose n (S h).
Proof.
  intro H. destruct (le_lt_dec i (S n)) as [Hn | Hn].
  - pose proof (choose_next (S n) i) as H1. pose proof (choose_next n h) as H2.
    pose proof (choose_nonneg (S n) i) as P1. pose proof (choose_nonneg n h) as P2.
    assert (Hi : INR (S h) <= INR i) by (apply le_INR; lia). assert (Hh : INR i <= INR (S n)) by (apply le_INR; lia).
    pose proof (pos_INR h) as P4. rewrite !S_INR in *.
    apply Rmult_le_reg_l with ((INR i + 1) * (INR h + 1)); [nra |].
    replace ((INR i + 1) * (INR h + 1) * (choose (S n) i * choose n (S h)))
      with ((INR i + 1) * choose (S n) i * ((INR h + 1) * choose n (S h))) by ring.
    replace ((INR i + 1) * (INR h + 1) * (choose (S n) (S i) * choose n h))
      with (((INR i + 1) * choose (S n) (S i)) * ((INR h + 1) * choose n h)) by ring.
    rewrite H1, H2.
    replace ((INR i + 1) * choose (S n) i * ((INR n - INR h) * choose n h))
      with ((choose (S n) i * choose n h) * ((INR i + 1) * (INR n - INR h))) by ring.
    replace ((INR n + 1 - INR i) * choose (S n) i * ((INR h + 1) * choose n h))
      with ((choose (S n) i * choose n h) * ((INR n + 1 - INR i) * (INR h + 1))) by ring.
    apply Rmult_le_compat_l; nra.
  - rewrite (choose_large (S n) i), (choose_large (S n) (S i)) by lia. lra.
Qed.

(** Binomial averages. *)
Lemma sum_shift (a n : nat) (f : nat -> R) : sum (seq (S a) n) f = sum (seq a n) (fun h => f (S h)).
Proof. rewrite <- seq_shift, sum_map. reflexivity. Qed.
Lemma sum_last (n : nat) (f : nat -> R) : sum (seq 0 (S n)) f = sum (seq 0 n) f + f n.
Proof. rewrite seq_S, sum_app. simpl. ring. Qed.
Definition B (n : nat) (f : nat -> R) : R := sum (seq 0 (S n)) (fun h => choose n h * f h).
Lemma B_0 f : B 0 f = f 0%nat.
Proof. unfold B. simpl. ring. Qed.
Lemma B_S n f : B (S n) f = B n f + B n (fun h => f (S h)).
Proof.
  unfold B. change (seq 0 (S (S n))) with (0%nat :: seq 1 (S n)).
  cbn [sum]. rewrite sum_shift, choose_0.
  rewrite (sum_ext _ (fun h => choose (S n) (S h) * f (S h)) (fun h => choose n h * f (S h) + choose n (S h) * f (S h)))
    by (intros; rewrite choose_S; ring).
  rewrite sum_plus.
  assert (H : 1 * f 0%nat + sum (seq 0 (S n)) (fun h => choose n (S h) * f (S h)) = sum (seq 0 (S n)) (fun h => choose n h * f h)); [| lra].
  rewrite (sum_last n (fun h => choose n (S h) * f (S h))), (choose_large n (S n)) by lia.
  change (seq 0 (S n)) with (0%nat :: seq 1 n). cbn [sum]. rewrite sum_shift, choose_0. ring.
Qed.
Lemma B_power E n : B n (fun h => E ^ h) = (1 + E) ^ n.
Proof.
  induction n; [rewrite B_0; reflexivity |]. rewrite B_S, IHn.
  replace (B n (fun h => E ^ S h)) with (E * (1 + E) ^ n); [simpl; ring |].
  rewrite <- IHn. unfold B. rewrite <- sum_scale. apply sum_ext. intros. simpl. ring.
Qed.

(** * The symmetrized problem *)
Section Symmetrized.
Variables (E : R) (n k : nat).     (* r = n + 1 guesses, at most k wrong, so v = n + 1 - k *)
Hypotheses (HE : 0 < E) (Hk : (k <= n)%nat).

(** [below h] is the page's N_h, [above h] its A_h. *)
Fixpoint below (h : nat) : R := match h with O => 1 | S g => E * below g + choose (S n) (S g) end.
Definition above (h : nat) : R := below (S n) * E ^ h / E ^ S n - below h.
Definition beta : R := below k * E ^ (S n - k) / below (S n).

Lemma below_next h : below (S h) = E * below h + choose (S n) (S h).
Proof. reflexivity. Qed.
Lemma E_power h : E ^ h <> 0.
Proof. apply pow_nonzero. lra. Qed.
Lemma below_pos h : 0 < below h.
Proof. induction h; [simpl; lra |]. rewrite below_next. pose proof (choose_nonneg (S n) (S h)). nra. Qed.
Lemma above_next h : above (S h) = E * above h - choose (S n) (S h).
Proof.
  unfold above. rewrite (below_next h). replace (E ^ S h) with (E * E ^ h) by (simpl; ring). field. apply E_power.
Qed.
Lemma above_last : above (S n) = 0.
Proof. unfold above. field. apply E_power. Qed.
Lemma above_end : above (S (S n)) = 0.
Proof. rewrite above_next, above_last, choose_large by lia. ring. Qed.
Lemma above_nonneg : forall d h, (h + d = S n)%nat -> 0 <= above h.
Proof.
  induction d; intros h H.
  - replace h with (S n) by lia. rewrite above_last. lra.
  - pose proof (IHd (S h) ltac:(lia)) as I. rewrite above_next in I. pose proof (choose_nonneg (S n) (S h)).
    apply Rmult_le_reg_l with E; lra.
Qed.

(** The quotient N_h / C(r - 1, h) increases. *)
Lemma below_cross H : forall h, (h <= H)%nat -> below h * choose n (S H) <= (below (S h) - E ^ S h) * choose n H.
Proof.
  induction h; intro L.
  - pose proof (cross_up n 0 H ltac:(lia)) as C0. rewrite choose_0 in C0. rewrite (below_next 0). change (below 0) with 1. rewrite pow_1.
    replace (E * 1 + choose (S n) 1 - E) with (choose (S n) 1) by ring. exact C0.
  - pose proof (IHh ltac:(lia)) as I. pose proof (cross_up n (S h) H ltac:(lia)) as C1.
    rewrite (below_next (S h)). rewrite (below_next h) at 1. replace (E ^ S (S h)) with (E * E ^ S h) by (simpl; ring). nra.
Qed.
Lemma below_up h : (S h <= n)%nat -> below h / choose n h <= below (S h) / choose n (S h).
Proof.
  intro L. pose proof (below_cross h h ltac:(lia)) as X. pose proof (choose_pos n h ltac:(lia)) as P. pose proof (choose_pos n (S h) L) as P'.
  assert (0 < E ^ S h) by (apply pow_lt; lra).
  apply Rmult_le_reg_r with (choose n h * choose n (S h)); [nra |].
  replace (below h / choose n h * (choose n h * choose n (S h))) with (below h * choose n (S h)) by (field; lra).
  replace (below (S h) / choose n (S h) * (choose n h * choose n (S h))) with (below (S h) * choose n h) by (field; lra).
  nra.
Qed.
Lemma below_upto : forall d h, (h + d <= n)%nat -> below h / choose n h <= below (h + d) / choose n (h + d).
Proof.
  induction d; intros h L; [rewrite Nat.add_0_r; lra |].
  apply Rle_trans with (below (h + d) / choose n (h + d)); [apply IHd; lia |].
  replace (h + S d)%nat with (S (h + d)) by lia. apply below_up. lia.
Qed.

(** The quotient of the other part to C(r - 1, h) decreases. *)
Lemma above_cross H : forall d i, (i + d = S n)%nat -> (H <= i)%nat -> above (S i) * choose n H <= above i * choose n (S H).
Proof.
  induction d; intros i L L'.
  - replace i with (S n) by lia. rewrite above_end, above_last. lra.
  - pose proof (IHd (S i) ltac:(lia) ltac:(lia)) as I. pose proof (cross_down n (S i) H ltac:(lia)) as X.
    rewrite (above_next (S i)) in I. pose proof (above_next i) as A.
    apply Rmult_le_reg_l with E; [exact HE |]. nra.
Qed.
Lemma above_down h : (S h <= n)%nat -> above (S h) / choose n (S h) <= above h / choose n h.
Proof.
  intro L. pose proof (above_cross h (S n - h) h ltac:(lia) ltac:(lia)) as X.
  pose proof (choose_pos n h ltac:(lia)) as P. pose proof (choose_pos n (S h) L) as P'.
  apply Rmult_le_reg_r with (choose n h * choose n (S h)); [nra |].
  replace (above h / choose n h * (choose n h * choose n (S h))) with (above h * choose n (S h)) by (field; lra).
  replace (above (S h) / choose n (S h) * (choose n h * choose n (S h))) with (above (S h) * choose n h) by (field; lra).
  exact X.
Qed.
Lemma above_downto : forall d h, (h + d <= n)%nat -> above (h + d) / choose n (h + d) <= above h / choose n h.
Proof.
  induction d; intros h L; [rewrite Nat.add_0_r; lra |].
  apply Rle_trans with (above (h + d) / choose n (h + d)); [| apply IHd; lia].
  replace (h + S d)%nat with (S (h + d)) by lia. apply above_down. lia.
Qed.

Lemma beta_pos : 0 < beta.
Proof. unfold beta. pose proof (below_pos k). pose proof (below_pos (S n)). apply Rdiv_lt_0_compat; [| lra]. apply Rmult_lt_0_compat; [lra |]. apply pow_lt. lra. Qed.
Lemma beta_balance : (1 - beta) * below k = beta * above k.
Proof.
  unfold beta, above. pose proof (below_pos (S n)).
  replace (E ^ S n) with (E ^ k * E ^ (S n - k)) by (rewrite <- pow_add; f_equal; lia).
  field. repeat split; try (apply pow_nonzero; lra). lra.
Qed.
Lemma beta_lt_1 : beta < 1.
Proof.
  assert (A : 0 < above k).
  { assert (X : forall d h, (h + d = n)%nat -> 0 < above h).
    { induction d; intros h H.
      - pose proof (above_next n) as A. rewrite above_last in A. replace h with n by lia.
        pose proof (choose_pos (S n) (S n) ltac:(lia)). nra.
      - pose proof (IHd (S h) ltac:(lia)) as I. rewrite above_next in I. pose proof (choose_nonneg (S n) (S h)). nra. }
    apply (X (n - k)%nat). lia. }
  pose proof beta_balance as BB. pose proof beta_pos. pose proof (below_pos k). nra.
Qed.

(** The multiplier of the constraint h, the page's w_h, and its largest quotient to C(r - 1, h), at h = k. *)
Definition weight (h : nat) : R := if (h <=? k)%nat then (1 - beta) * below h else beta * above h.
Definition price : R := (1 - beta) * below k / choose n k.
Definition goal (h : nat) : R := if (h <=? k)%nat then 1 else 0.

Lemma weight_next h : weight (S h) = E * weight h + choose (S n) (S h) * (goal (S h) - beta).
Proof.
  unfold weight, goal. destruct (Nat.leb_spec (S h) k), (Nat.leb_spec h k); try lia.
  - rewrite below_next. ring.
  - replace h with k in * by lia. rewrite above_next, beta_balance. ring.
  - rewrite above_next. ring.
Qed.
Lemma weight_0 : weight 0 = choose (S n) 0 * (goal 0 - beta).
Proof. unfold weight, goal. simpl. ring. Qed.
Lemma weight_last : weight (S n) = 0.
Proof. unfold weight. destruct (Nat.leb_spec (S n) k); [lia |]. rewrite above_last. ring. Qed.
Lemma weight_range h : (h <= n)%nat -> 0 <= weight h <= price * choose n h.
Proof.
  intro L. pose proof beta_pos. pose proof beta_lt_1. pose proof (choose_pos n h L) as P. unfold weight, price.
  destruct (Nat.leb_spec h k) as [X | X].
  - split; [pose proof (below_pos h); nra |].
    pose proof (below_upto (k - h) h ltac:(lia)) as U. replace (h + (k - h))%nat with k in U by lia.
    replace ((1 - beta) * below h) with ((1 - beta) * (below h / choose n h) * choose n h) by (field; lra).
    apply Rmult_le_compat_r; [lra |]. unfold Rdiv at 2. rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra | exact U].
  - split; [pose proof (above_nonneg (S n - h) h ltac:(lia)); nra |].
    pose proof (above_downto (h - k) k ltac:(lia)) as U. replace (k + (h - k))%nat with h in U by lia.
    rewrite beta_balance.
    replace (beta * above h) with (beta * (above h / choose n h) * choose n h) by (field; lra).
    apply Rmult_le_compat_r; [lra |]. unfold Rdiv at 2. rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra | exact U].
Qed.

(** Summation by parts: the success above beta in terms of the u_h. *)
Lemma by_parts (p : nat -> R) : forall j,
  sum (seq 0 (S j)) (fun h => choose (S n) h * (goal h - beta) * p h)
  = sum (seq 0 j) (fun h => weight h * (p h - E * p (S h))) + weight j * p j.
Proof.
  induction j; [simpl seq; cbn [sum]; rewrite weight_0; ring |].
  rewrite sum_last, IHj, (sum_last j), weight_next. ring.
Qed.
Lemma goal_sum (f : nat -> R) : forall j, (k <= j)%nat -> sum (seq 0 (S j)) (fun h => goal h * f h) = sum (seq 0 (S k)) f.
Proof.
  intros j L. replace (S j) with (S k + (j - k))%nat by lia. rewrite seq_app, sum_app.
  rewrite (sum_ext (seq 0 (S k)) _ f), (sum_ext (seq (0 + S k) (j - k)) _ (fun _ => 0)).
  - rewrite sum_zero. ring.
  - intros h I. apply in_seq in I. unfold goal. destruct (Nat.leb_spec h k); [lia | ring].
  - intros h I. apply in_seq in I. unfold goal. destruct (Nat.leb_spec h k); [ring | lia].
Qed.

Definition B_goal (p : nat -> R) : R := sum (seq 0 (S k)) (fun h => choose (S n) h * p h).

(** The upper bound. The sign of p is not used, nor E >= 1. *)
Theorem symmetrized_upper (p : nat -> R) (d : R) :
  B (S n) p = 1 -> B n (fun h => Rmax 0 (p h - E * p (S h))) <= d -> B_goal p <= beta + price * d.
Proof.
  intros H1 H2. pose proof (by_parts p (S n)) as A. rewrite weight_last in A.
  rewrite (sum_ext _ (fun h => choose (S n) h * (goal h - beta) * p h)
    (fun h => goal h * (choose (S n) h * p h) + (- beta) * (choose (S n) h * p h))) in A by (intros; ring).
  rewrite sum_plus, sum_scale, goal_sum in A by lia. fold (B (S n) p) in A. rewrite H1 in A. fold (B_goal p) in A.
  assert (L : sum (seq 0 (S n)) (fun h => weight h * (p h - E * p (S h))) <= price * B n (fun h => Rmax 0 (p h - E * p (S h)))).
  { unfold B. rewrite <- sum_scale. apply sum_le. intros h I. apply in_seq in I.
    pose proof (weight_range h ltac:(lia)) as W. pose proof (Rmax_l 0 (p h - E * p (S h))). pose proof (Rmax_r 0 (p h - E * p (S h))).
    apply Rle_trans with (weight h * Rmax 0 (p h - E * p (S h))); [apply Rmult_le_compat_l; lra |].
    rewrite <- Rmult_assoc. apply Rmult_le_compat_r; lra. }
  assert (Q : 0 <= price).
  { unfold price. pose proof beta_lt_1. pose proof (below_pos k). pose proof (choose_pos n k Hk). 
    apply Rmult_le_pos; [nra |]. left. apply Rinv_0_lt_compat. lra. }
  assert (price * B n (fun h => Rmax 0 (p h - E * p (S h))) <= price * d) by (apply Rmult_le_compat_l; lra).
  lra.
Qed.

(** The bound is attained by two columns, u_r and u_k. *)
Lemma below_sum : forall j, sum (seq 0 (S j)) (fun h => choose (S n) h * E ^ (j - h)) = below j.
Proof.
  induction j; [simpl; ring |]. rewrite sum_last, Nat.sub_diag, below_next, <- IHj, <- sum_scale. simpl (E ^ 0). rewrite Rmult_1_r. f_equal.
  apply sum_ext. intros h I. apply in_seq in I. replace (S j - h)%nat with (S (j - h)) by lia. simpl pow. ring.
Qed.
Lemma price_nonneg : 0 <= price.
Proof.
  unfold price. pose proof beta_lt_1. pose proof (below_pos k). pose proof (choose_pos n k Hk).
  apply Rmult_le_pos; [nra |]. left. apply Rinv_0_lt_compat. lra.
Qed.

Section Attained.
Variable d : R.
Hypothesis Hd : 0 <= d.
Definition u_k : R := Rmin (d / choose n k) (/ below k).
Definition u_r : R := (1 - below k * u_k) / below (S n).
Definition best (h : nat) : R := E ^ (S n - h) * u_r + (if (h <=? k)%nat then E ^ (k - h) * u_k else 0).

Lemma u_k_nonneg : 0 <= u_k.
Proof.
  unfold u_k. apply Rmin_glb.
  - apply Rmult_le_pos; [exact Hd |]. left. apply Rinv_0_lt_compat. apply choose_pos. exact Hk.
  - left. apply Rinv_0_lt_compat. apply below_pos.
Qed.
Lemma u_r_nonneg : 0 <= u_r.
Proof.
  unfold u_r. apply Rmult_le_pos; [| left; apply Rinv_0_lt_compat; apply below_pos].
  pose proof (below_pos k). assert (u_k <= / below k) by apply Rmin_r.
  assert (below k * u_k <= below k * / below k) by (apply Rmult_le_compat_l; lra). rewrite Rinv_r in *; lra.
Qed.
Lemma best_nonneg h : 0 <= best h.
Proof.
  unfold best. pose proof u_k_nonneg. pose proof u_r_nonneg. assert (P : forall j, 0 < E ^ j) by (intro; apply pow_lt; lra).
  pose proof (P (S n - h)%nat). pose proof (P (k - h)%nat). destruct (h <=? k)%nat; nra.
Qed.
Lemma best_step h : (h <= n)%nat -> best h - E * best (S h) = if (h =? k)%nat then u_k else 0.
Proof.
  intro L. unfold best. replace (S n - h)%nat with (S (S n - S h)) by lia.
  destruct (Nat.eqb_spec h k), (Nat.leb_spec h k), (Nat.leb_spec (S h) k); try lia.
  - subst h. rewrite Nat.sub_diag. simpl pow. ring.
  - replace (k - h)%nat with (S (k - S h)) by lia. simpl pow. ring.
  - simpl pow. ring.
Qed.
Lemma best_back h : 1 <= E -> (h <= n)%nat -> best (S h) - E * best h <= 0.
Proof.
  intros E1 L. pose proof (best_step h L) as X. pose proof (best_nonneg (S h)). pose proof u_k_nonneg as U.
  assert (Y : E * best (S h) <= best h) by (revert X; destruct (h =? k)%nat; intro X; lra).
  set (x := best (S h)) in *. set (z := best h) in *. assert (x <= E * x) by nra. assert (E * x <= E * z) by (apply Rmult_le_compat_l; nra). lra.
Qed.
Lemma extra_goal (f : nat -> R) : sum (seq 0 (S (S n))) (fun h => choose (S n) h * (if (h <=? k)%nat then f h else 0)) = sum (seq 0 (S k)) (fun h => choose (S n) h * f h).
Proof.
  rewrite <- (goal_sum (fun h => choose (S n) h * f h) (S n)) by lia. apply sum_ext. intros h _. unfold goal. destruct (h <=? k)%nat; ring.
Qed.
Lemma best_total : B (S n) best = 1.
Proof.
  unfold B, best.
  rewrite (sum_ext _ _ (fun h => u_r * (choose (S n) h * E ^ (S n - h)) + choose (S n) h * (if (h <=? k)%nat then E ^ (k - h) * u_k else 0))) by (intros; ring).
  rewrite sum_plus, sum_scale, below_sum, (extra_goal (fun h => E ^ (k - h) * u_k)).
  rewrite (sum_ext (seq 0 (S k)) _ (fun h => u_k * (choose (S n) h * E ^ (k - h)))) by (intros; ring).
  rewrite sum_scale, below_sum. unfold u_r. pose proof (below_pos (S n)). field. lra.
Qed.
Lemma best_goal : B_goal best = Rmin 1 (beta + price * d).
Proof.
  unfold B_goal, best.
  rewrite (sum_ext _ _ (fun h => (E ^ (S n - k) * u_r) * (choose (S n) h * E ^ (k - h)) + u_k * (choose (S n) h * E ^ (k - h)))).
  2:{ intros h I. apply in_seq in I. destruct (Nat.leb_spec h k); [| lia].
      replace (S n - h)%nat with ((S n - k) + (k - h))%nat by lia. rewrite pow_add. ring. }
  rewrite sum_plus, !sum_scale, below_sum. pose proof (below_pos (S n)) as P. pose proof (below_pos k) as P'.
  replace (E ^ (S n - k) * u_r * below k) with (beta * (1 - below k * u_k)) by (unfold u_r, beta; field; lra).
  pose proof beta_lt_1 as L. pose proof (choose_pos n k Hk) as Q. unfold u_k, price.
  destruct (Rle_dec (d / choose n k) (/ below k)) as [X | X].
  - rewrite (Rmin_left (d / choose n k)) by exact X. rewrite Rmin_right; [field; lra |].
    assert ((1 - beta) * below k / choose n k * d = (1 - beta) * (below k * (d / choose n k))) as -> by (field; lra).
    assert (below k * (d / choose n k) <= below k * / below k) by (apply Rmult_le_compat_l; lra). rewrite Rinv_r in * by lra. nra.
  - rewrite (Rmin_right (d / choose n k)) by lra. rewrite Rmin_left; [field; lra |].
    assert ((1 - beta) * below k / choose n k * d = (1 - beta) * (below k * (d / choose n k))) as -> by (field; lra).
    assert (below k * / below k <= below k * (d / choose n k)) by (apply Rmult_le_compat_l; lra). rewrite Rinv_r in * by lra. nra.
Qed.
Lemma best_private : B n (fun h => Rmax 0 (best h - E * best (S h))) <= d.
Proof.
  unfold B. rewrite (sum_ext _ _ (fun h => if (h =? k)%nat then choose n k * u_k else 0)).
  2:{ intros h I. apply in_seq in I. rewrite best_step by lia. destruct (Nat.eqb_spec h k) as [-> |].
      - rewrite Rmax_right by apply u_k_nonneg. reflexivity.
      - rewrite Rmax_left by lra. ring. }
  assert (X : forall (a : R) j s, sum (seq s j) (fun h => if (h =? k)%nat then a else 0) = if ((s <=? k) && (k <? s + j))%nat then a else 0).
  { intros a. induction j; intro s; cbn [seq sum].
    - destruct (Nat.leb_spec s k), (Nat.ltb_spec k (s + 0)); simpl; try lia; reflexivity.
    - rewrite IHj. destruct (Nat.eqb_spec s k), (Nat.leb_spec s k), (Nat.leb_spec (S s) k), (Nat.ltb_spec k (s + S j)), (Nat.ltb_spec k (S s + j)); simpl; try lia; ring. }
  rewrite X. destruct (Nat.leb_spec 0 k), (Nat.ltb_spec k (0 + S n)); simpl; try lia.
  pose proof (choose_pos n k Hk). assert (U : u_k <= d / choose n k) by apply Rmin_l.
  apply Rle_trans with (choose n k * (d / choose n k)); [apply Rmult_le_compat_l; lra |]. right. field. lra.
Qed.
End Attained.

(** The page's beta and b: the binomial probabilities of v or more and of exactly v successes. *)
Definition q : R := E / (1 + E).
Lemma tail_sum : forall j, (j <= S n)%nat -> sum (seq (S n - j) (S j)) (fun i => choose (S n) i * E ^ i) = below j * E ^ (S n - j).
Proof.
  induction j; intro L.
  - rewrite Nat.sub_0_r. cbn [seq sum below]. rewrite <- (choose_mirror (S n) (S n)), Nat.sub_diag, choose_0 by lia. ring.
  - change (seq (S n - S j) (S (S j))) with ((S n - S j)%nat :: seq (S (S n - S j)) (S j)). cbn [sum].
    replace (S (S n - S j)) with (S n - j)%nat by lia. rewrite IHj by lia. rewrite choose_mirror by lia. rewrite below_next.
    replace (S n - j)%nat with (S (S n - S j)) by lia. simpl pow. ring.
Qed.
Lemma below_all : below (S n) = (1 + E) ^ S n.
Proof.
  rewrite <- B_power. pose proof (tail_sum (S n) ltac:(lia)) as X. rewrite Nat.sub_diag, Rmult_1_r in X. rewrite <- X. reflexivity.
Qed.
Lemma binomial_value j : (j <= S n)%nat -> binomial (S n) q j = choose (S n) j * E ^ j / (1 + E) ^ S n.
Proof.
  intro L. unfold binomial. destruct (Nat.leb_spec j (S n)); [| lia]. rewrite choose_C by lia. unfold Rdiv. rewrite !Rmult_assoc. f_equal.
  replace (1 - q) with (/ (1 + E)) by (unfold q; field; lra). unfold q, Rdiv. rewrite Rpow_mult_distr, Rmult_assoc. f_equal.
  rewrite <- pow_add. replace (j + (S n - j))%nat with (S n) by lia. apply pow_inv.
Qed.
Lemma beta_value : sum (seq (S n - k) (S k)) (binomial (S n) q) = beta.
Proof.
  rewrite (sum_ext _ _ (fun i => / (1 + E) ^ S n * (choose (S n) i * E ^ i))).
  - rewrite sum_scale, tail_sum by lia. unfold beta. rewrite below_all. field. apply pow_nonzero. lra.
  - intros i I. apply in_seq in I. rewrite binomial_value by lia. field. apply pow_nonzero. lra.
Qed.
Lemma price_value : price = INR (S n) / INR (S n - k) * beta * (1 - beta) / binomial (S n) q (S n - k).
Proof.
  rewrite binomial_value, choose_mirror by lia. unfold price, beta at 2. rewrite below_all.
  pose proof (choose_row n k) as X. rewrite <- minus_INR in X by lia.
  pose proof (choose_pos n k Hk). pose proof (choose_pos (S n) k ltac:(lia)).
  assert (0 < INR (S n - k)) by (apply lt_0_INR; lia). assert (0 < INR (S n)) by (apply lt_0_INR; lia).
  assert (Y : choose n k = INR (S n - k) * choose (S n) k / INR (S n)) by (rewrite <- X; field; lra).
  rewrite Y. field. repeat split; try lra; try apply E_power; apply pow_nonzero; lra.
Qed.
End Symmetrized.

(** * Mechanisms *)
(** Secrets are lists of m bits; a ticket has for each canary no guess or a guess of its bit. *)
Definition secrets (m : nat) : list (list bool) := words [false; true] m.
Fixpoint flip (i : nat) (s : list bool) : list bool :=
  match s, i with [], _ => [] | b :: s', O => negb b :: s' | b :: s', S j => b :: flip j s' end.
Definition ticket := list (option bool).
Definition hit (b : bool) (g : option bool) : nat := match g with Some c => if eqb b c then 1 else 0 | None => 0 end.
Definition miss (b : bool) (g : option bool) : nat := hit (negb b) g.
Fixpoint right (s : list bool) (t : ticket) : nat := match s, t with b :: s', g :: t' => hit b g + right s' t' | _, _ => 0 end.
Fixpoint wrong (s : list bool) (t : ticket) : nat := match s, t with b :: s', g :: t' => miss b g + wrong s' t' | _, _ => 0 end.
Fixpoint guesses (t : ticket) : nat := match t with [] => 0 | Some _ :: t' => S (guesses t') | None :: t' => guesses t' end.
Fixpoint right_at (i : nat) (s : list bool) (t : ticket) : nat :=
  match s, t, i with b :: _, g :: _, O => hit b g | _ :: s', _ :: t', S j => right_at j s' t' | _, _, _ => 0 end.
Fixpoint wrong_at (i : nat) (s : list bool) (t : ticket) : nat :=
  match s, t, i with b :: _, g :: _, O => miss b g | _ :: s', _ :: t', S j => wrong_at j s' t' | _, _, _ => 0 end.

Lemma sum_secrets m (f : list bool -> R) : sum (secrets (S m)) f = sum (secrets m) (fun s => f (false :: s)) + sum (secrets m) (fun s => f (true :: s)).
Proof. unfold secrets. rewrite sum_words. simpl. ring. Qed.
Lemma secrets_cons m s : In s (secrets (S m)) <-> exists b s', s = b :: s' /\ In s' (secrets m).
Proof.
  unfold secrets. simpl. rewrite app_nil_r, in_app_iff, !in_map_iff. split.
  - intros [[s' [E I]] | [s' [E I]]]; eauto.
  - intros [[|] [s' [E I]]]; subst; eauto.
Qed.
Lemma secrets_length m : forall s, In s (secrets m) -> length s = m.
Proof.
  induction m; intros s I; [simpl in I; destruct I as [<- | []]; reflexivity |].
  apply secrets_cons in I as [b [s' [-> I]]]. simpl. f_equal. auto.
Qed.
Lemma flip_secret m : forall i s, In s (secrets m) -> In (flip i s) (secrets m).
Proof.
  induction m; intros i s I; [simpl in I; destruct I as [<- | []]; destruct i; left; reflexivity |].
  apply secrets_cons in I as [b [s' [-> I]]]. apply secrets_cons. destruct i; simpl; eauto.
Qed.
Lemma flip_twice : forall s i, flip i (flip i s) = s.
Proof. induction s; intros [| i]; simpl; try reflexivity; f_equal; auto. apply negb_involutive. Qed.
Lemma sum_flip m : forall i f, sum (secrets m) (fun s => f (flip i s)) = sum (secrets m) f.
Proof.
  induction m; intros i f; [destruct i; reflexivity |]. rewrite !sum_secrets. destruct i; simpl; [ring |].
  rewrite (IHm i (fun s => f (false :: s))), (IHm i (fun s => f (true :: s))). reflexivity.
Qed.
Lemma sum_secrets_const m c : sum (secrets m) (fun _ => c) = 2 ^ m * c.
Proof. induction m; [simpl; ring |]. rewrite sum_secrets, IHm. simpl. ring. Qed.

Lemma right_wrong : forall t s, length s = length t -> (right s t + wrong s t = guesses t)%nat.
Proof.
  induction t as [| g t IH]; intros [| b s] H; simpl in *; try lia. injection H as H. specialize (IH s H).
  destruct g as [[|] |], b; unfold miss, hit; simpl; lia.
Qed.
Lemma right_flip : forall t s i, right_at i (flip i s) t = wrong_at i s t.
Proof. induction t as [| g t IH]; intros [| b s] [| i]; simpl; auto. Qed.
Lemma wrong_flip : forall t s i, (wrong (flip i s) t + wrong_at i s t = wrong s t + right_at i s t)%nat.
Proof.
  induction t as [| g t IH]; intros [| b s] [| i]; simpl; auto; [| rewrite <- Nat.add_assoc, IH; lia].
  unfold miss. rewrite negb_involutive. lia.
Qed.
Lemma at_most_one : forall t s i, (right_at i s t + wrong_at i s t <= 1)%nat.
Proof. induction t as [| g t IH]; intros [| b s] [| i]; simpl; auto. unfold miss, hit. destruct g as [[|] |], b; simpl; lia. Qed.
Lemma count_right : forall t s, length s = length t -> sum (seq 0 (length s)) (fun i => INR (right_at i s t)) = INR (right s t).
Proof.
  induction t as [| g t IH]; intros [| b s] H; simpl in H; try lia; [reflexivity |]. injection H as H. cbn [length seq sum].
  rewrite sum_shift. cbn [right_at right]. rewrite IH, plus_INR by exact H. reflexivity.
Qed.
Lemma count_wrong : forall t s, length s = length t -> sum (seq 0 (length s)) (fun i => INR (wrong_at i s t)) = INR (wrong s t).
Proof.
  induction t as [| g t IH]; intros [| b s] H; simpl in H; try lia; [reflexivity |]. injection H as H. cbn [length seq sum].
  rewrite sum_shift. cbn [wrong_at wrong]. rewrite IH, plus_INR by exact H. reflexivity.
Qed.
Lemma pick_one (w : nat) (x : R) : forall j, sum (seq 0 j) (fun h => if (w =? h)%nat then x else 0) = if (w <? j)%nat then x else 0.
Proof.
  induction j; [reflexivity |]. rewrite sum_last, IHj. destruct (Nat.ltb_spec w j), (Nat.eqb_spec w j), (Nat.ltb_spec w (S j)); try lia; ring.
Qed.

Section Mechanism.
Context {Y : Type}.
Variables (m r : nat) (outputs : list Y) (guess : Y -> ticket) (M : list bool -> Y -> R).

(** A probability law over finitely many outputs for each secret. *)
Definition mechanism : Prop := forall s, In s (secrets m) -> (forall y, In y outputs -> 0 <= M s y) /\ sum outputs (M s) = 1.
(** (eps, delta)-private in each canary; E = e^eps; both directions, because s may have the canary or not. *)
Definition private_in_each (E delta : R) : Prop := forall s i, In s (secrets m) -> (i < m)%nat ->
  sum outputs (fun y => Rmax 0 (M s y - E * M (flip i s) y)) <= delta.
(** From the output follows a guess about exactly r canaries. *)
Definition guess_rule : Prop := forall y, In y outputs -> length (guess y) = m /\ guesses (guess y) = r.
(** The probability that v or more guesses are right, if each canary is in with probability 1/2. *)
Definition success (v : nat) : R :=
  / 2 ^ m * sum (secrets m) (fun s => sum outputs (fun y => if (v <=? right s (guess y))%nat then M s y else 0)).

Hypotheses (HM : mechanism) (HG : guess_rule).

(** [total f]: the sum of f over secrets and outputs; [wrongs h]: the probability of exactly h wrong guesses, P_h on the page. *)
Definition total (f : list bool -> Y -> R) : R := sum (secrets m) (fun s => sum outputs (f s)).
Definition exactly (h : nat) (s : list bool) (y : Y) : R := if (wrong s (guess y) =? h)%nat then 1 else 0.
Definition wrongs (h : nat) : R := / 2 ^ m * total (fun s y => exactly h s y * M s y).

Lemma total_ext f g : (forall s y, In s (secrets m) -> In y outputs -> f s y = g s y) -> total f = total g.
Proof. intro H. unfold total. apply sum_ext. intros s I. apply sum_ext. auto. Qed.
Lemma total_le f g : (forall s y, In s (secrets m) -> In y outputs -> f s y <= g s y) -> total f <= total g.
Proof. intro H. unfold total. apply sum_le. intros s I. apply sum_le. auto. Qed.
Lemma total_plus f g : total (fun s y => f s y + g s y) = total f + total g.
Proof. unfold total. rewrite <- sum_plus. apply sum_ext. intros. apply sum_plus. Qed.
Lemma total_scale c f : total (fun s y => c * f s y) = c * total f.
Proof. unfold total. rewrite <- sum_scale. apply sum_ext. intros. apply sum_scale. Qed.
Lemma total_sum {A} (l : list A) f : total (fun s y => sum l (fun x => f x s y)) = sum l (fun x => total (f x)).
Proof.
  unfold total. rewrite (sum_swap l (secrets m)). apply sum_ext. intros s _. apply sum_swap.
Qed.
Lemma total_flip i f : total (fun s y => f (flip i s) y) = total f.
Proof. unfold total. apply (sum_flip m i (fun s => sum outputs (f s))). Qed.
Lemma two_pos : 0 < / 2 ^ m.
Proof. apply Rinv_0_lt_compat. apply pow_lt. lra. Qed.

Lemma right_is s y : In s (secrets m) -> In y outputs -> (right s (guess y) + wrong s (guess y) = r)%nat.
Proof. intros I J. destruct (HG y J) as [L1 L2]. rewrite right_wrong; [exact L2 |]. rewrite L1. apply secrets_length. exact I. Qed.

Lemma wrongs_total : sum (seq 0 (S r)) wrongs = 1.
Proof.
  unfold wrongs. rewrite sum_scale, <- total_sum.
  rewrite (total_ext _ M).
  - unfold total. rewrite (sum_ext _ _ (fun _ => 1)) by (intros s I; apply HM; exact I). rewrite sum_secrets_const. field. apply pow_nonzero. lra.
  - intros s y I J. unfold exactly. pose proof (right_is s y I J) as X.
    rewrite (sum_ext _ _ (fun h => if (wrong s (guess y) =? h)%nat then M s y else 0)) by (intros h _; destruct (_ =? _)%nat; ring).
    rewrite pick_one. destruct (Nat.ltb_spec (wrong s (guess y)) (S r)); [reflexivity | lia].
Qed.
Lemma wrongs_success v : (1 <= v <= r)%nat -> sum (seq 0 (S (r - v))) wrongs = success v.
Proof.
  intro V. unfold wrongs, success. rewrite sum_scale, <- total_sum. f_equal. apply total_ext. intros s y I J.
  unfold exactly. pose proof (right_is s y I J) as X.
  rewrite (sum_ext _ _ (fun h => if (wrong s (guess y) =? h)%nat then M s y else 0)) by (intros h _; destruct (_ =? _)%nat; ring).
  rewrite pick_one. destruct (Nat.ltb_spec (wrong s (guess y)) (S (r - v))), (Nat.leb_spec v (right s (guess y))); try reflexivity; lia.
Qed.

(** Counting the triples of a secret, an output and a right guess in two ways. *)
Lemma wrongs_right h : (h <= r)%nat -> (INR r - INR h) * wrongs h = / 2 ^ m * sum (seq 0 m) (fun i => total (fun s y => INR (right_at i s (guess y)) * exactly h s y * M s y)).
Proof.
  intro L. unfold wrongs. rewrite <- total_sum.
  rewrite <- Rmult_assoc, (Rmult_comm (INR r - INR h)), Rmult_assoc, <- total_scale. f_equal. apply total_ext. intros s y I J.
  destruct (HG y J) as [L1 L2]. pose proof (secrets_length m s I) as L3.
  rewrite (sum_ext _ _ (fun i => (exactly h s y * M s y) * INR (right_at i s (guess y)))) by (intros; ring).
  rewrite sum_scale. rewrite <- L3 at 1. rewrite count_right by congruence. unfold exactly.
  pose proof (right_is s y I J) as X. destruct (Nat.eqb_spec (wrong s (guess y)) h) as [<- |]; [| ring].
  rewrite <- X, plus_INR. ring.
Qed.
Lemma wrongs_wrong h : INR (S h) * wrongs (S h) = / 2 ^ m * sum (seq 0 m) (fun i => total (fun s y => INR (right_at i s (guess y)) * exactly h s y * M (flip i s) y)).
Proof.
  unfold wrongs.
  rewrite (sum_ext _ _ (fun i => total (fun s y => INR (wrong_at i s (guess y)) * exactly (S h) s y * M s y))).
  - rewrite <- total_sum.
    rewrite <- Rmult_assoc, (Rmult_comm (INR (S h))), Rmult_assoc, <- total_scale. f_equal. apply total_ext. intros s y I J.
    destruct (HG y J) as [L1 L2]. pose proof (secrets_length m s I) as L3.
    rewrite (sum_ext _ _ (fun i => (exactly (S h) s y * M s y) * INR (wrong_at i s (guess y)))) by (intros; ring).
    rewrite sum_scale. rewrite <- L3 at 1. rewrite count_wrong by congruence. unfold exactly.
    destruct (Nat.eqb_spec (wrong s (guess y)) (S h)) as [E |]; [rewrite E; ring | ring].
  - intros i _. rewrite <- (total_flip i (fun s y => INR (wrong_at i s (guess y)) * exactly (S h) s y * M s y)).
    apply total_ext. intros s y _ _. rewrite <- (right_flip _ (flip i s)), flip_twice. unfold exactly.
    pose proof (at_most_one (guess y) s i) as A. pose proof (wrong_flip (guess y) s i) as W.
    destruct (Nat.eq_dec (right_at i s (guess y)) 0) as [-> | N]; [simpl; ring |].
    destruct (Nat.eqb_spec (wrong s (guess y)) h), (Nat.eqb_spec (wrong (flip i s) (guess y)) (S h)); try lia; ring.
Qed.

Lemma wrongs_private E delta : private_in_each E delta ->
  sum (seq 0 r) (fun h => Rmax 0 ((INR r - INR h) * wrongs h - E * (INR (S h) * wrongs (S h)))) <= INR m * delta.
Proof.
  intro HP. pose proof two_pos as T.
  set (D := fun i s y => M s y - E * M (flip i s) y).
  apply Rle_trans with (sum (seq 0 r) (fun h => / 2 ^ m * sum (seq 0 m) (fun i => total (fun s y => INR (right_at i s (guess y)) * exactly h s y * Rmax 0 (D i s y))))).
  - apply sum_le. intros h I. apply in_seq in I. rewrite wrongs_right, wrongs_wrong by lia.
    assert (K : forall i s y, 0 <= INR (right_at i s (guess y)) * exactly h s y).
    { intros. apply Rmult_le_pos; [apply pos_INR |]. unfold exactly. destruct (_ =? _)%nat; lra. }
    apply Rmax_lub.
    + apply Rmult_le_pos; [lra |]. apply sum_pos. intros i _. unfold total. apply sum_pos. intros s _. apply sum_pos. intros y _.
      apply Rmult_le_pos; [apply K | apply Rmax_l].
    + rewrite <- (Rmult_assoc E), (Rmult_comm E (/ 2 ^ m)), Rmult_assoc, <- Rmult_minus_distr_l. apply Rmult_le_compat_l; [lra |].
      unfold Rminus. rewrite <- (Rmult_1_l (E * _)), <- Ropp_mult_distr_l_reverse.
      rewrite <- sum_scale, <- sum_scale, <- sum_plus. apply sum_le. intros i _.
      rewrite <- !total_scale, <- total_plus. apply total_le. intros s y _ _. unfold D.
      pose proof (K i s y). pose proof (Rmax_r 0 (M s y - E * M (flip i s) y)).
      apply Rle_trans with (INR (right_at i s (guess y)) * exactly h s y * (M s y - E * M (flip i s) y)); [right; ring |].
      apply Rmult_le_compat_l; auto.
  - rewrite sum_scale, sum_swap.
    apply Rle_trans with (/ 2 ^ m * sum (seq 0 m) (fun i => 2 ^ m * delta)).
    + apply Rmult_le_compat_l; [lra |]. apply sum_le. intros i I. apply in_seq in I. rewrite <- total_sum.
      rewrite <- sum_secrets_const. unfold total. apply sum_le. intros s J.
      eapply Rle_trans; [| apply (HP s i J); lia]. apply sum_le. intros y _. fold (D i s y).
      rewrite (sum_ext _ _ (fun h => if (wrong s (guess y) =? h)%nat then INR (right_at i s (guess y)) * Rmax 0 (D i s y) else 0))
        by (intros h _; unfold exactly; destruct (_ =? _)%nat; ring).
      rewrite pick_one. pose proof (at_most_one (guess y) s i) as A. pose proof (Rmax_l 0 (D i s y)) as P.
      assert (INR (right_at i s (guess y)) <= 1) by (change 1 with (INR 1); apply le_INR; lia).
      pose proof (pos_INR (right_at i s (guess y))). destruct (_ <? _)%nat; nra.
    + rewrite sum_const, seq_length. right. field. apply pow_nonzero. lra.
Qed.
End Mechanism.

(** * A mechanism that attains the bound *)
(** All tickets with exactly r guesses about m canaries. *)
Fixpoint tickets (m r : nat) : list ticket :=
  match m, r with
  | O, O => [[]]
  | O, S _ => []
  | S m', O => map (cons None) (tickets m' O)
  | S m', S r' => map (cons None) (tickets m' (S r')) ++ map (cons (Some false)) (tickets m' r') ++ map (cons (Some true)) (tickets m' r')
  end.
Lemma tickets_rule m : forall r t, In t (tickets m r) -> length t = m /\ guesses t = r.
Proof.
  induction m; intros [| r] t I; simpl in I.
  - destruct I as [<- | []]. auto.
  - destruct I.
  - apply in_map_iff in I as [t' [<- I]]. destruct (IHm _ _ I). simpl. auto.
  - rewrite !in_app_iff, !in_map_iff in I. destruct I as [[t' [<- I]] | [[t' [<- I]] | [t' [<- I]]]]; destruct (IHm _ _ I); simpl; auto.
Qed.
Lemma sum_tickets_0 m (f : ticket -> R) : sum (tickets (S m) 0) f = sum (tickets m 0) (fun t => f (None :: t)).
Proof. simpl. apply sum_map. Qed.
Lemma sum_tickets_S m r (f : ticket -> R) : sum (tickets (S m) (S r)) f
  = sum (tickets m (S r)) (fun t => f (None :: t)) + (sum (tickets m r) (fun t => f (Some false :: t)) + sum (tickets m r) (fun t => f (Some true :: t))).
Proof. simpl tickets. rewrite !sum_app, !sum_map. reflexivity. Qed.

Lemma B_ext n f g : (forall h, f h = g h) -> B n f = B n g.
Proof. intro H. unfold B. apply sum_ext. intros. rewrite H. reflexivity. Qed.
Lemma B_plus n f g : B n (fun h => f h + g h) = B n f + B n g.
Proof. unfold B. rewrite <- sum_plus. apply sum_ext. intros. ring. Qed.

(** The tickets by their number of wrong guesses. *)
Lemma sum_tickets : forall m r s (f : nat -> R), length s = m -> sum (tickets m r) (fun t => f (wrong s t)) = choose m r * B r f.
Proof.
  induction m; intros r s f L; destruct s as [| b s]; simpl in L; try lia.
  - destruct r; [rewrite B_0; simpl; ring | simpl; ring].
  - injection L as L. destruct r as [| r].
    + rewrite sum_tickets_0. cbn [wrong miss hit Nat.add]. rewrite (IHm 0%nat s f L), !choose_0. reflexivity.
    + rewrite sum_tickets_S, choose_S.
      destruct b; cbn [wrong miss hit negb eqb Nat.add]; rewrite (IHm (S r) s f L), (IHm r s f L), (IHm r s (fun h => f (S h)) L), B_S; ring.
Qed.
(** The same for two secrets that differ in one bit: only tickets with a guess there matter. *)
Lemma sum_tickets_flip : forall m r s i (g : nat -> nat -> R), length s = S m -> (i < S m)%nat -> (forall h, g h h = 0) ->
  sum (tickets (S m) (S r)) (fun t => g (wrong s t) (wrong (flip i s) t)) = choose m r * B r (fun h => g h (S h) + g (S h) h).
Proof.
  assert (Zero : forall m s i (g : nat -> nat -> R), (forall h, g h h = 0) -> length s = m -> sum (tickets m 0) (fun t => g (wrong s t) (wrong (flip i s) t)) = 0).
  { induction m; intros s i g G L; destruct s as [| b s]; simpl in L; try lia.
    - destruct i; simpl; rewrite G; ring.
    - injection L as L. rewrite sum_tickets_0. destruct i; cbn [flip wrong miss hit Nat.add].
      + rewrite (sum_ext _ _ (fun _ => 0)) by (intros; apply G). apply sum_zero.
      + apply IHm; auto. }
  induction m; intros r s i g L Li G; destruct s as [| b s]; simpl in L; try lia; injection L as L.
  - destruct s; simpl in L; try lia. destruct i; try lia. destruct r.
    + rewrite B_0. simpl. destruct b; simpl; ring.
    + simpl. ring.
  - rewrite sum_tickets_S. destruct i as [| i].
    + rewrite (sum_ext (tickets (S m) (S r)) _ (fun _ => 0)) by (intros; apply G). rewrite sum_zero, B_plus, Rmult_plus_distr_l.
      pose proof (sum_tickets (S m) r s (fun h => g h (S h)) L) as X1. pose proof (sum_tickets (S m) r s (fun h => g (S h) h) L) as X2.
      rewrite <- X1, <- X2. destruct b; cbn [flip wrong miss hit negb eqb Nat.add]; ring.
    + assert (A : sum (tickets (S m) (S r)) (fun t => g (wrong s t) (wrong (flip i s) t)) = choose m r * B r (fun h => g h (S h) + g (S h) h)) by (apply IHm; auto; lia).
      destruct r as [| r].
      * pose proof (Zero (S m) s i g G L) as Z1. pose proof (Zero (S m) s i (fun a c => g (S a) (S c)) (fun h => G (S h)) L) as Z2.
        rewrite choose_0 in *. destruct b; cbn [flip wrong miss hit negb eqb Nat.add]; rewrite A, Z1, Z2; ring.
      * rewrite choose_S.
        assert (A1 : sum (tickets (S m) (S r)) (fun t => g (wrong s t) (wrong (flip i s) t)) = choose m r * B r (fun h => g h (S h) + g (S h) h)) by (apply IHm; auto; lia).
        assert (A2 : sum (tickets (S m) (S r)) (fun t => g (S (wrong s t)) (S (wrong (flip i s) t))) = choose m r * B r (fun h => g (S h) (S (S h)) + g (S (S h)) (S h)))
          by (apply (IHm r s i (fun a c => g (S a) (S c))); auto; lia).
        rewrite B_S in *. destruct b; cbn [flip wrong miss hit negb eqb Nat.add]; rewrite A, A1, A2; ring.
Qed.

Section Attaining.
Variables (E : R) (m n k : nat) (d : R).      (* m + 1 canaries, n + 1 guesses *)
Hypotheses (HE : 1 <= E) (Hk : (k <= n)%nat) (Hn : (n <= m)%nat) (Hd : 0 <= d).
Let p := best E n k d.
Definition attaining (s : list bool) (t : ticket) : R := best E n k d (wrong s t) / choose (S m) (S n).
Let E0 : 0 < E. Proof. lra. Qed.
Let Cpos : 0 < choose (S m) (S n). Proof. apply choose_pos. lia. Qed.

Lemma attaining_mechanism : mechanism (S m) (tickets (S m) (S n)) attaining.
Proof.
  intros s I. split.
  - intros t _. unfold attaining. apply Rmult_le_pos; [apply best_nonneg; assumption |]. left. apply Rinv_0_lt_compat. exact Cpos.
  - unfold attaining. rewrite (sum_tickets (S m) (S n) s (fun h => best E n k d h / choose (S m) (S n))) by (apply secrets_length; exact I).
    pose proof (best_total E n k E0 Hk d) as X.
    replace (B (S n) (fun h => best E n k d h / choose (S m) (S n))) with (/ choose (S m) (S n) * B (S n) (best E n k d)).
    + rewrite X. field. lra.
    + unfold B. rewrite <- sum_scale. apply sum_ext. intros. field. lra.
Qed.
Lemma attaining_private delta : d = INR (S m) * delta / INR (S n) -> private_in_each (S m) (tickets (S m) (S n)) attaining E delta.
Proof.
  intros D s i I Li. pose proof (secrets_length _ _ I) as L.
  assert (Same : forall h, Rmax 0 (p h / choose (S m) (S n) - E * (p h / choose (S m) (S n))) = 0).
  { intro h. apply Rmax_left. assert (0 <= p h) by (apply best_nonneg; assumption).
    assert (0 <= p h / choose (S m) (S n)) by (apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; exact Cpos]). nra. }
  unfold attaining. fold p.
  rewrite (sum_tickets_flip m n s i (fun a c => Rmax 0 (p a / choose (S m) (S n) - E * (p c / choose (S m) (S n)))) L Li Same).
  assert (Scale : forall x y, Rmax 0 (x / choose (S m) (S n) - E * (y / choose (S m) (S n))) = / choose (S m) (S n) * Rmax 0 (x - E * y)).
  { intros. rewrite <- pos_scale by (left; apply Rinv_0_lt_compat; exact Cpos). f_equal. field. lra. }
  replace (B n _) with (/ choose (S m) (S n) * B n (fun h => Rmax 0 (p h - E * p (S h)))).
  - pose proof (best_private E n k E0 Hk d Hd) as P. fold p in P. pose proof (choose_column m n) as X.
    assert (N : 0 < INR (S n)) by (apply lt_0_INR; lia). assert (N' : 0 < INR (S m)) by (apply lt_0_INR; lia).
    assert (Q : 0 < choose m n) by (apply choose_pos; lia).
    apply Rle_trans with (choose m n * (/ choose (S m) (S n) * d)).
    + apply Rmult_le_compat_l; [lra |]. apply Rmult_le_compat_l; [left; apply Rinv_0_lt_compat; exact Cpos | exact P].
    + right. rewrite D. replace (choose m n) with (INR (S n) * choose (S m) (S n) / INR (S m)) by (rewrite X; field; lra). field. repeat split; lra.
  - unfold B. rewrite <- sum_scale. apply sum_ext. intros h J. apply in_seq in J. rewrite !Scale.
    rewrite (Rmax_left 0 (p (S h) - E * p h)); [ring |]. apply best_back; auto; lia.
Qed.
Lemma attaining_success : success (S m) (tickets (S m) (S n)) (fun t => t) attaining (S n - k) = B_goal n k (best E n k d).
Proof.
  unfold success. rewrite (sum_ext _ _ (fun _ => B_goal n k (best E n k d))).
  - rewrite sum_secrets_const. field. apply pow_nonzero. lra.
  - intros s I. pose proof (secrets_length _ _ I) as L.
    rewrite (sum_ext _ _ (fun t => (fun h => if (h <=? k)%nat then p h / choose (S m) (S n) else 0) (wrong s t))).
    + rewrite (sum_tickets (S m) (S n) s (fun h => if (h <=? k)%nat then p h / choose (S m) (S n) else 0) L). unfold B. rewrite (extra_goal n k Hk (fun h => p h / choose (S m) (S n))).
      unfold B_goal. rewrite <- sum_scale. apply sum_ext. intros. fold p. field. lra.
    + intros t J. destruct (tickets_rule _ _ _ J) as [T1 T2]. assert (X : length s = length t) by congruence. apply right_wrong in X. rewrite T2 in X.
      unfold attaining. fold p. destruct (Nat.leb_spec (S n - k) (right s t)), (Nat.leb_spec (wrong s t) k); try reflexivity; lia.
Qed.
End Attaining.

(** * The theorem *)
Definition q_of (eps : R) : R := exp eps / (1 + exp eps).
Definition tail (r v : nat) (q : R) : R := sum (seq v (S r - v)) (binomial r q).
Definition formula (m r v : nat) (eps delta : R) : R :=
  let beta := tail r v (q_of eps) in beta + INR m * delta / INR v * (beta * (1 - beta)) / binomial r (q_of eps) v.
Definition P_star (m r v : nat) (eps delta : R) : R := Rmin 1 (formula m r v eps delta).

Lemma formula_value m n k eps delta : (k <= n)%nat ->
  formula m (S n) (S n - k) eps delta = beta (exp eps) n k + price (exp eps) n k * (INR m * delta / INR (S n)).
Proof.
  intro Hk. pose proof (exp_pos eps) as P. unfold formula, tail. replace (S (S n) - (S n - k))%nat with (S k) by lia.
  change (q_of eps) with (q (exp eps)). rewrite beta_value, price_value by assumption. rewrite (binomial_value (exp eps) n k P Hk (S n - k)) by lia.
  assert (0 < INR (S n - k)) by (apply lt_0_INR; lia). assert (0 < INR (S n)) by (apply lt_0_INR; lia).
  pose proof (choose_pos (S n) (S n - k) ltac:(lia)).
  field. repeat split; try lra; apply pow_nonzero; lra.
Qed.

Lemma exp_ge_1 x : 0 <= x -> 1 <= exp x.
Proof.
  intro H. set (An := fun N : nat => / INR (fact N) * x ^ N).
  assert (U : Un_cv (fun N => sum_f_R0 An N) (exp x)).
  { unfold exp. destruct (exist_exp x) as [l L]. exact L. }
  apply Rle_trans with (sum_f_R0 An 0); [unfold An; simpl; lra |]. apply sum_incr; [exact U |].
  intro N. unfold An. apply Rmult_le_pos; [left; apply Rinv_0_lt_compat; apply INR_fact_lt_0 | apply pow_le; exact H].
Qed.

(** The symmetrized problem: the upper bound. The signs of p and eps do not matter. *)
Theorem one_run_symmetrized (m r v : nat) (eps delta : R) (p : nat -> R) : (1 <= v <= r)%nat ->
  sum (seq 0 (S r)) (fun h => C r h * p h) = 1 ->
  sum (seq 0 r) (fun h => C (r - 1) h * Rmax 0 (p h - exp eps * p (S h))) <= INR m * delta / INR r ->
  sum (seq 0 (S (r - v))) (fun h => C r h * p h) <= formula m r v eps delta.
Proof.
  intros V H1 H2. destruct r as [| n]; [lia |]. set (k := (S n - v)%nat). replace v with (S n - k)%nat by (unfold k; lia).
  assert (Hk : (k <= n)%nat) by (unfold k; lia). replace (S n - (S n - k))%nat with k by lia. rewrite formula_value by exact Hk.
  rewrite (sum_ext _ _ (fun h => choose (S n) h * p h)) by (intros h I; apply in_seq in I; rewrite choose_C by lia; reflexivity).
  apply symmetrized_upper; [apply exp_pos | exact Hk | |].
  - rewrite <- H1. unfold B. apply sum_ext. intros h I. apply in_seq in I. rewrite choose_C by lia. reflexivity.
  - eapply Rle_trans; [| exact H2]. right. unfold B. apply sum_ext. intros h I. apply in_seq in I. rewrite choose_C by lia.
    replace (S n - 1)%nat with n by lia. reflexivity.
Qed.
(** The bound is attained, by one p that satisfies both halves of privacy, and is never above 1. *)
Theorem one_run_symmetrized_attained (m r v : nat) (eps delta : R) : (1 <= v <= r)%nat -> 0 <= eps -> 0 <= delta -> exists p : nat -> R,
  (forall h, 0 <= p h) /\ sum (seq 0 (S r)) (fun h => C r h * p h) = 1 /\
  sum (seq 0 r) (fun h => C (r - 1) h * Rmax 0 (p h - exp eps * p (S h))) <= INR m * delta / INR r /\
  (forall h, (h < r)%nat -> Rmax 0 (p (S h) - exp eps * p h) = 0) /\
  sum (seq 0 (S (r - v))) (fun h => C r h * p h) = P_star m r v eps delta.
Proof.
  intros V He Hd. destruct r as [| n]; [lia |]. set (k := (S n - v)%nat). unfold P_star. replace v with (S n - k)%nat by (unfold k; lia).
  assert (Hk : (k <= n)%nat) by (unfold k; lia). replace (S n - (S n - k))%nat with k by lia. rewrite formula_value by exact Hk.
  pose proof (exp_pos eps) as P. assert (E1 : 1 <= exp eps) by (apply exp_ge_1; exact He).
  assert (D : 0 <= INR m * delta / INR (S n)).
  { apply Rmult_le_pos; [apply Rmult_le_pos; [apply pos_INR | exact Hd] |]. left. apply Rinv_0_lt_compat. apply lt_0_INR. lia. }
  exists (best (exp eps) n k (INR m * delta / INR (S n))). split; [| split; [| split; [| split]]].
  - intro h. apply best_nonneg; assumption.
  - rewrite <- (best_total (exp eps) n k P Hk (INR m * delta / INR (S n))). unfold B. apply sum_ext. intros h I. apply in_seq in I. rewrite choose_C by lia. reflexivity.
  - eapply Rle_trans; [| apply (best_private (exp eps) n k P Hk _ D)]. right. unfold B. replace (S n - 1)%nat with n by lia.
    apply sum_ext. intros h I. apply in_seq in I. rewrite choose_C by lia. reflexivity.
  - intros h L. apply Rmax_left. apply best_back; auto; lia.
  - rewrite <- (best_goal (exp eps) n k P Hk). unfold B_goal. apply sum_ext. intros h I. apply in_seq in I. rewrite choose_C by lia. reflexivity.
Qed.

(** Every mechanism. *)
Theorem one_run_upper (Y : Type) (outputs : list Y) (guess : Y -> ticket) (M : list bool -> Y -> R) (m r v : nat) (eps delta : R) :
  (1 <= v <= r)%nat -> mechanism m outputs M -> private_in_each m outputs M (exp eps) delta -> guess_rule m r outputs guess ->
  success m outputs guess M v <= P_star m r v eps delta.
Proof.
  intros V HM HP HG. unfold P_star. apply Rmin_glb.
  - rewrite <- (wrongs_success m r outputs guess M HG v V), <- (wrongs_total m r outputs guess M HM HG).
    replace (S r) with (S (r - v) + v)%nat by lia. rewrite seq_app, sum_app.
    assert (0 <= sum (seq (0 + S (r - v)) v) (wrongs m outputs guess M)); [| lra].
    apply sum_pos. intros h _. unfold wrongs, total. apply Rmult_le_pos; [left; apply two_pos |].
    apply sum_pos. intros s I. apply sum_pos. intros y J. destruct (HM s I) as [N _]. unfold exactly. specialize (N y J). destruct (_ =? _)%nat; lra.
  - rewrite <- (wrongs_success m r outputs guess M HG v V). set (P := wrongs m outputs guess M).
    pose proof (wrongs_total m r outputs guess M HM HG) as T. pose proof (wrongs_private m r outputs guess M HG (exp eps) delta HP) as W. fold P in T, W.
    destruct r as [| n]; [lia |].
    assert (Cp : forall h, (h <= S n)%nat -> 0 < C (S n) h) by (intros; rewrite <- choose_C by lia; apply choose_pos; lia).
    assert (X : forall j, (j <= S n)%nat -> sum (seq 0 (S j)) (fun h => C (S n) h * (P h / C (S n) h)) = sum (seq 0 (S j)) P).
    { intros j L. apply sum_ext. intros h I. apply in_seq in I. pose proof (Cp h ltac:(lia)). field. lra. }
    rewrite <- X by lia. apply one_run_symmetrized; [exact V | rewrite X by lia; exact T |].
    assert (N : 0 < INR (S n)) by (apply lt_0_INR; lia).
    apply Rle_trans with (/ INR (S n) * (INR m * delta)); [| right; field; lra].
    eapply Rle_trans; [| apply Rmult_le_compat_l; [left; apply Rinv_0_lt_compat; exact N | exact W]].
    right. rewrite <- sum_scale. apply sum_ext. intros h I. apply in_seq in I. replace (S n - 1)%nat with n by lia.
    pose proof (Cp h ltac:(lia)) as C1. pose proof (Cp (S h) ltac:(lia)) as C2.
    assert (C3 : 0 < C n h) by (rewrite <- choose_C by lia; apply choose_pos; lia).
    rewrite <- !pos_scale by (try (left; apply Rinv_0_lt_compat; exact N); lra). f_equal.
    pose proof (choose_row n h) as R1. pose proof (choose_column n h) as R2. rewrite !choose_C in R1, R2 by lia.
    assert (N' : 0 < INR (S h)) by (apply lt_0_INR; lia).
    assert (N2 : 0 < INR (S n) - INR h) by (assert (INR h < INR (S n)) by (apply lt_INR; lia); lra).
    replace (C (S n) h) with (INR (S n) * C n h / (INR (S n) - INR h)) by (rewrite R1; field; lra).
    replace (C (S n) (S h)) with (INR (S n) * C n h / INR (S h)) by (rewrite <- R2; field; lra).
    field. repeat split; lra.
Qed.

(** The whole theorem: P_star is the largest probability. *)
Theorem one_run_audit (m r v : nat) (eps delta : R) : (1 <= v <= r)%nat -> (r <= m)%nat -> 0 <= eps -> 0 <= delta ->
  (forall (Y : Type) (outputs : list Y) (guess : Y -> ticket) (M : list bool -> Y -> R),
     mechanism m outputs M -> private_in_each m outputs M (exp eps) delta -> guess_rule m r outputs guess ->
     success m outputs guess M v <= P_star m r v eps delta) /\
  (exists (outputs : list ticket) (M : list bool -> ticket -> R),
     mechanism m outputs M /\ private_in_each m outputs M (exp eps) delta /\ guess_rule m r outputs (fun t => t) /\
     success m outputs (fun t => t) M v = P_star m r v eps delta).
Proof.
  intros V Hr He Hd. split; [intros; apply one_run_upper; assumption |].
  destruct r as [| n]; [lia |]. destruct m as [| m]; [lia |]. set (k := (S n - v)%nat). unfold P_star. replace v with (S n - k)%nat by (unfold k; lia).
  assert (Hk : (k <= n)%nat) by (unfold k; lia). rewrite formula_value by exact Hk.
  assert (E1 : 1 <= exp eps) by (apply exp_ge_1; exact He). pose proof (exp_pos eps) as P.
  set (d := INR (S m) * delta / INR (S n)).
  assert (D : 0 <= d).
  { apply Rmult_le_pos; [apply Rmult_le_pos; [apply pos_INR | exact Hd] |]. left. apply Rinv_0_lt_compat. apply lt_0_INR. lia. }
  exists (tickets (S m) (S n)), (attaining (exp eps) m n k d). split; [| split; [| split]].
  - apply attaining_mechanism; auto; lia.
  - apply attaining_private; auto; lia.
  - intros t I. apply tickets_rule. exact I.
  - rewrite attaining_success by (auto; lia). apply best_goal; assumption.
Qed.

(** The page's example: 2 canaries, 2 guesses, at least one right, e^eps = 3, delta = 1/100. *)
Example page_example (eps : R) : exp eps = 3 -> P_star 2 2 1 eps (1/100) = 301/320.
Proof. intro H. unfold P_star, formula, tail, q_of. rewrite H. unfold binomial, C. simpl. rewrite Rmin_right; lra. Qed.

(** ** Rules that may abstain: at most r guesses, the number may depend on the output *)
Fixpoint fill (j : nat) (t : ticket) : ticket :=
  match j, t with O, _ => t | S _, [] => [] | S j', None :: t' => Some false :: fill j' t' | S _, Some c :: t' => Some c :: fill j t' end.
Lemma fill_rule : forall t j, (guesses t + j <= length t)%nat -> length (fill j t) = length t /\ guesses (fill j t) = (guesses t + j)%nat.
Proof.
  induction t as [| [c |] t IH]; intros [| j] H; simpl in *; try lia.
  - destruct (IH (S j) ltac:(lia)). lia.
  - destruct (IH j ltac:(lia)). lia.
Qed.
Lemma fill_right : forall t j s, (right s t <= right s (fill j t))%nat.
Proof.
  induction t as [| [c |] t IH]; intros [| j] [| b s]; simpl; try lia.
  - specialize (IH (S j) s). lia.
  - specialize (IH j s). lia.
Qed.
Theorem one_run_at_most (Y : Type) (outputs : list Y) (guess : Y -> ticket) (M : list bool -> Y -> R) (m r v : nat) (eps delta : R) :
  (1 <= v <= r)%nat -> (r <= m)%nat -> mechanism m outputs M -> private_in_each m outputs M (exp eps) delta ->
  (forall y, In y outputs -> length (guess y) = m /\ (guesses (guess y) <= r)%nat) ->
  success m outputs guess M v <= P_star m r v eps delta.
Proof.
  intros V Hr HM HP HG. set (full := fun y => fill (r - guesses (guess y)) (guess y)).
  apply Rle_trans with (success m outputs full M v).
  - unfold success. apply Rmult_le_compat_l; [left; apply two_pos |]. apply sum_le. intros s I. apply sum_le. intros y J.
    destruct (HM s I) as [N _]. specialize (N y J). pose proof (fill_right (guess y) (r - guesses (guess y)) s) as F. fold (full y) in F.
    destruct (Nat.leb_spec v (right s (guess y))), (Nat.leb_spec v (right s (full y))); try lra; lia.
  - apply one_run_upper; [exact V | exact HM | exact HP |]. intros y J. destruct (HG y J) as [L G].
    destruct (fill_rule (guess y) (r - guesses (guess y)) ltac:(lia)) as [F1 F2]. unfold full. rewrite F1, F2. split; [exact L | lia].
Qed.

(** P_star does not decrease in eps, delta and r, nor increase in v: the class of mechanisms or the event grows. *)
Corollary P_star_monotone (m r r' v v' : nat) (eps eps' delta delta' : R) : (1 <= v' <= v)%nat -> (v <= r <= r')%nat -> (r' <= m)%nat ->
  0 <= eps <= eps' -> 0 <= delta <= delta' -> P_star m r v eps delta <= P_star m r' v' eps' delta'.
Proof.
  intros V Hr Hm He Hd. destruct (one_run_audit m r v eps delta ltac:(lia) ltac:(lia) ltac:(lra) ltac:(lra)) as [_ (outputs & M & HM & HP & HG & <-)].
  apply Rle_trans with (success m outputs (fun t => t) M v').
  - unfold success. apply Rmult_le_compat_l; [left; apply two_pos |]. apply sum_le. intros s I. apply sum_le. intros y J.
    destruct (HM s I) as [N _]. specialize (N y J). destruct (Nat.leb_spec v (right s y)), (Nat.leb_spec v' (right s y)); try lra; lia.
  - apply one_run_at_most; [lia | lia | exact HM | | intros y J; destruct (HG y J); lia]. intros s i I L. eapply Rle_trans; [| apply (proj2 Hd)].
    eapply Rle_trans; [| apply (HP s i I L)].
    apply sum_le. intros y J. destruct (HM (flip i s) (flip_secret m i s I)) as [N _]. specialize (N y J).
    assert (X : exp eps <= exp eps').
    { replace eps' with (eps + (eps' - eps)) by ring. rewrite exp_plus. pose proof (exp_pos eps). pose proof (exp_ge_1 (eps' - eps) ltac:(lra)). nra. }
    apply Rmax_lub; [apply Rmax_l |]. eapply Rle_trans; [| apply Rmax_r]. nra.
Qed.

(** ** P_star at the observed number of right guesses is a p-value of the claim (eps, delta) *)
Definition p_value (m r : nat) (eps delta : R) (observed : nat) : R := if (observed =? 0)%nat then 1 else P_star m r observed eps delta.
Theorem one_run_p_value (Y : Type) (outputs : list Y) (guess : Y -> ticket) (M : list bool -> Y -> R) (m r : nat) (eps delta a : R) :
  (r <= m)%nat -> mechanism m outputs M -> private_in_each m outputs M (exp eps) delta ->
  (forall y, In y outputs -> length (guess y) = m /\ (guesses (guess y) <= r)%nat) -> 0 <= a < 1 ->
  / 2 ^ m * sum (secrets m) (fun s => sum outputs (fun y => if Rle_dec (p_value m r eps delta (right s (guess y))) a then M s y else 0)) <= a.
Proof.
  intros Hr HM HP HG Ha.
  assert (X : forall j v, (v + j = S r)%nat -> (1 <= v)%nat -> (forall w, (w < v)%nat -> a < p_value m r eps delta w) ->
    / 2 ^ m * sum (secrets m) (fun s => sum outputs (fun y => if Rle_dec (p_value m r eps delta (right s (guess y))) a then M s y else 0)) <= a).
  { induction j; intros v E V H.
    - rewrite (sum_ext _ _ (fun _ => 0)); [rewrite sum_zero; lra |]. intros s I. rewrite (sum_ext _ _ (fun _ => 0)); [apply sum_zero |].
      intros y J. destruct (HG y J) as [L G]. pose proof (secrets_length m s I) as L'.
      pose proof (right_wrong (guess y) s ltac:(congruence)) as RW. specialize (H (right s (guess y)) ltac:(lia)). destruct (Rle_dec _ _); [lra | reflexivity].
    - destruct (Rle_dec (p_value m r eps delta v) a) as [Small | Large].
      + apply Rle_trans with (success m outputs guess M v).
        * unfold success. apply Rmult_le_compat_l; [left; apply two_pos |]. apply sum_le. intros s I. apply sum_le. intros y J.
          destruct (HM s I) as [N _]. specialize (N y J). destruct (Rle_dec _ _) as [Q | Q], (Nat.leb_spec v (right s (guess y))) as [T | T]; try lra.
          specialize (H _ T). lra.
        * eapply Rle_trans; [apply (one_run_at_most Y outputs guess M m r v eps delta); auto; lia |].
          unfold p_value in Small. destruct (Nat.eqb_spec v 0); [lia | exact Small].
      + apply (IHj (S v)); [lia | lia |]. intros w Hw. destruct (Nat.eq_dec w v) as [-> |]; [lra | apply H; lia]. }
  apply (X r 1%nat); [lia | lia |]. intros w Hw. replace w with 0%nat by lia. unfold p_value. simpl. lra.
Qed.

(** ** Any profile: every w is a certificate. The grid is any finite list, lam any upper bound of w, top any upper bound of the braces. *)
Theorem any_profile (Y K : Type) (outputs : list Y) (guess : Y -> ticket) (M : list bool -> Y -> R) (m r v : nat)
  (grid : list K) (eps delta lam : K -> R) (w : K -> nat -> R) (top : R) :
  (1 <= v <= r)%nat -> mechanism m outputs M -> guess_rule m r outputs guess ->
  (forall k, In k grid -> private_in_each m outputs M (exp (eps k)) (delta k)) ->
  (forall k h, In k grid -> (h < r)%nat -> 0 <= w k h <= lam k) ->
  (forall h, (h <= r)%nat -> (if (h <=? r - v)%nat then 1 else 0)
     - sum grid (fun k => w k h * (INR r - INR h) / INR r - exp (eps k) * w k (h - 1)%nat * INR h / INR r) <= top) ->
  success m outputs guess M v <= sum grid (fun k => lam k * (INR m / INR r) * delta k) + top.
Proof.
  intros V HM HG HP HW HT. set (P := wrongs m outputs guess M). assert (N : 0 < INR r) by (apply lt_0_INR; lia).
  assert (P0 : forall h, 0 <= P h).
  { intro h. unfold P, wrongs, total. apply Rmult_le_pos; [left; apply two_pos |]. apply sum_pos. intros s I. apply sum_pos. intros y J.
    destruct (HM s I) as [Q _]. unfold exactly. specialize (Q y J). destruct (_ =? _)%nat; lra. }
  set (x := fun k h => (INR r - INR h) * P h - exp (eps k) * (INR (S h) * P (S h))).
  assert (One : forall k, In k grid -> sum (seq 0 r) (fun h => w k h * x k h) <= lam k * (INR m * delta k)).
  { intros k Ik. pose proof (wrongs_private m r outputs guess M HG (exp (eps k)) (delta k) (HP k Ik)) as W. fold P in W.
    pose proof (HW k 0%nat Ik ltac:(lia)) as L0.
    apply Rle_trans with (lam k * sum (seq 0 r) (fun h => Rmax 0 (x k h))); [| apply Rmult_le_compat_l; [lra | exact W]].
    rewrite <- sum_scale. apply sum_le. intros h I. apply in_seq in I. pose proof (HW k h Ik ltac:(lia)) as Wh.
    pose proof (Rmax_l 0 (x k h)). pose proof (Rmax_r 0 (x k h)). apply Rle_trans with (w k h * Rmax 0 (x k h)); [apply Rmult_le_compat_l; lra | apply Rmult_le_compat_r; lra]. }
  (* the terms of one eps, collected by the number of wrong guesses *)
  assert (Collect : forall k, sum (seq 0 (S r)) (fun h => (w k h * (INR r - INR h) / INR r - exp (eps k) * w k (h - 1)%nat * INR h / INR r) * P h)
    = / INR r * sum (seq 0 r) (fun h => w k h * x k h)).
  { intro k. rewrite (sum_ext _ _ (fun h => / INR r * (w k h * (INR r - INR h) * P h) + (- exp (eps k) / INR r) * (w k (h - 1)%nat * INR h * P h))) by (intros; field; lra).
    rewrite sum_plus, !sum_scale, sum_last. change (seq 0 (S r)) with (0%nat :: seq 1 r). cbn [sum]. rewrite sum_shift.
    rewrite (sum_ext (seq 0 r) (fun h => w k (S h - 1)%nat * INR (S h) * P (S h)) (fun h => w k h * (INR (S h) * P (S h))))
      by (intros; simpl (S _ - 1)%nat; rewrite Nat.sub_0_r; ring).
    rewrite (sum_ext (seq 0 r) (fun h => w k h * x k h) (fun h => w k h * (INR r - INR h) * P h + (- exp (eps k)) * (w k h * (INR (S h) * P (S h))))) by (intros; unfold x; ring).
    rewrite sum_plus, sum_scale. simpl (INR 0). field. lra. }
  rewrite <- (wrongs_success m r outputs guess M HG v V). fold P.
  rewrite <- (Rmult_1_r top), <- (wrongs_total m r outputs guess M HM HG). fold P. rewrite <- sum_scale.
  apply Rle_trans with (sum grid (fun k => / INR r * sum (seq 0 r) (fun h => w k h * x k h)) + sum (seq 0 (S r)) (fun h => top * P h)).
  - rewrite (sum_ext grid _ (fun k => sum (seq 0 (S r)) (fun h => (w k h * (INR r - INR h) / INR r - exp (eps k) * w k (h - 1)%nat * INR h / INR r) * P h)))
      by (intros; symmetry; apply Collect).
    rewrite sum_swap, <- sum_plus.
    replace (sum (seq 0 (S (r - v))) P) with (sum (seq 0 (S r)) (fun h => goal (r - v) h * P h)) by (apply (goal_sum r (r - v)); lia).
    apply sum_le. intros h I. apply in_seq in I. pose proof (HT h ltac:(lia)) as T. pose proof (P0 h) as Ph.
    rewrite (sum_ext grid _ (fun k => P h * (w k h * (INR r - INR h) / INR r - exp (eps k) * w k (h - 1)%nat * INR h / INR r))) by (intros; ring).
    rewrite sum_scale. unfold goal. apply Rle_trans with (P h * (sum grid (fun k => w k h * (INR r - INR h) / INR r - exp (eps k) * w k (h - 1)%nat * INR h / INR r) + top)); [| right; ring].
    rewrite (Rmult_comm _ (P h)). apply Rmult_le_compat_l; lra.
  - apply Rplus_le_compat_r. apply sum_le. intros k Ik. pose proof (One k Ik) as O.
    replace (lam k * (INR m / INR r) * delta k) with (/ INR r * (lam k * (INR m * delta k))) by (field; lra).
    apply Rmult_le_compat_l; [left; apply Rinv_0_lt_compat; exact N | exact O].
Qed.

(** ** Different canaries, delta = 0 *)
(** A canary is a pair of its eps and the rate of "in". The chance of a right guess is the page's q_i. *)
Definition rate (pi : R) (c : bool) : R := if c then pi else 1 - pi.
Definition chance (eps pi : R) (c : bool) : R := exp eps * rate pi c / (exp eps * rate pi c + rate pi (negb c)).
Fixpoint prior (cs : list (R * R)) (s : list bool) : R :=
  match cs, s with (_, pi) :: cs', b :: s' => rate pi b * prior cs' s' | _, _ => 1 end.
Fixpoint chances (cs : list (R * R)) (t : ticket) : list R :=
  match cs, t with
  | (eps, pi) :: cs', Some c :: t' => chance eps pi c :: chances cs' t'
  | _ :: cs', None :: t' => chances cs' t'
  | _, _ => []
  end.
Definition tail_of (qs : list R) (v : nat) : R := poisson_binomial qs (fun j => if (v <=? j)%nat then 1 else 0).

Lemma chance_range eps pi c : 0 <= pi <= 1 -> 0 <= chance eps pi c <= 1 /\ 0 < exp eps * rate pi c + rate pi (negb c).
Proof.
  intro H. pose proof (exp_pos eps) as P. assert (A : 0 <= rate pi c) by (unfold rate; destruct c; lra).
  assert (S : rate pi c + rate pi (negb c) = 1) by (unfold rate; destruct c; simpl; lra).
  assert (A' : 0 <= rate pi (negb c)) by (unfold rate; destruct c; simpl; lra).
  assert (D : 0 < exp eps * rate pi c + rate pi (negb c)).
  { destruct (Req_dec (rate pi c) 0) as [Z |]; [rewrite Z in *; lra |]. assert (0 < exp eps * rate pi c) by (apply Rmult_lt_0_compat; lra). lra. }
  split; [| exact D]. unfold chance. pose proof (Rmult_le_pos _ _ (Rlt_le _ _ P) A). split.
  - apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; exact D].
  - apply Rmult_le_reg_r with (exp eps * rate pi c + rate pi (negb c)); [exact D |]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

(** Given one output, the number of right guesses is at most the Poisson-binomial variable in the stochastic order. *)
Lemma posterior (phi : nat -> R) : forall (cs : list (R * R)) (t : ticket) (W : list bool -> R) (a : nat),
  (forall j j', (j <= j')%nat -> phi j <= phi j') -> length t = length cs ->
  (forall c, In c cs -> 0 <= snd c <= 1) ->
  (forall s i, In s (secrets (length cs)) -> (i < length cs)%nat -> W s <= exp (fst (nth i cs (0, 0))) * W (flip i s)) ->
  sum (secrets (length cs)) (fun s => prior cs s * W s * phi (a + right s t)%nat)
  <= poisson_binomial (chances cs t) (fun j => phi (a + j)%nat) * sum (secrets (length cs)) (fun s => prior cs s * W s).
Proof.
  induction cs as [| [eps pi] cs IH]; intros t W a Mono L Rate HW; destruct t as [| g t]; simpl in L; try lia.
  - simpl. right. ring.
  - injection L as L. cbn [length]. rewrite !sum_secrets. cbn [prior].
    set (Z := fun b => sum (secrets (length cs)) (fun s => prior cs s * W (b :: s))).
    assert (Step : forall b a', sum (secrets (length cs)) (fun s => prior cs s * W (b :: s) * phi (a' + right s t)%nat)
      <= poisson_binomial (chances cs t) (fun j => phi (a' + j)%nat) * Z b).
    { intros b a'. apply (IH t (fun s => W (b :: s)) a'); auto.
      - intros c I. apply Rate. right. exact I.
      - intros s i I Li. apply (HW (b :: s) (S i)); [| simpl; lia]. apply secrets_cons. eauto. }
    assert (PriorPos : forall s, 0 <= prior cs s).
    { assert (Rc : forall c, In c cs -> 0 <= snd c <= 1) by (intros; apply Rate; right; auto). clear - Rc. revert Rc.
      induction cs as [| [e p] cs IH]; intros Rc [| b s]; cbn [prior]; try lra. pose proof (Rc (e, p) (or_introl eq_refl)) as X. simpl in X.
      apply Rmult_le_pos; [unfold rate; destruct b; lra | apply IH]. intros c I. apply Rc. right. exact I. }
    assert (Ratio : forall b, Z b <= exp eps * Z (negb b)).
    { intro b. unfold Z. rewrite <- sum_scale. apply sum_le. intros s I.
      pose proof (HW (b :: s) 0%nat ltac:(apply secrets_cons; eauto) ltac:(simpl; lia)) as X. simpl in X. specialize (PriorPos s).
      replace (exp eps * (prior cs s * W (negb b :: s))) with (prior cs s * (exp eps * W (negb b :: s))) by ring.
      apply Rmult_le_compat_l; auto. }
    pose proof (Rate (eps, pi) (or_introl eq_refl)) as R0. simpl in R0.
    assert (Rb : forall b, 0 <= rate pi b) by (intros [|]; unfold rate; lra).
    assert (Total : forall b, sum (secrets (length cs)) (fun s => rate pi b * prior cs s * W (b :: s)) = rate pi b * Z b).
    { intro b. unfold Z. rewrite <- sum_scale. apply sum_ext. intros. ring. }
    rewrite !Total.
    assert (Part : forall b, sum (secrets (length cs)) (fun s => rate pi b * prior cs s * W (b :: s) * phi (a + right (b :: s) (g :: t))%nat)
      <= rate pi b * (poisson_binomial (chances cs t) (fun j => phi (a + hit b g + j)%nat) * Z b)).
    { intro b. eapply Rle_trans; [| apply Rmult_le_compat_l; [apply Rb | apply (Step b (a + hit b g)%nat)]]. right.
      rewrite <- sum_scale. apply sum_ext. intros s _. cbn [right]. rewrite Nat.add_assoc. ring. }
    eapply Rle_trans; [apply Rplus_le_compat; apply Part |].
    destruct g as [c |].
    + cbn [chances poisson_binomial]. destruct (chance_range eps pi c R0) as [Q D].
      set (hi := poisson_binomial (chances cs t) (fun j => phi (a + S j)%nat)). set (lo := poisson_binomial (chances cs t) (fun j => phi (a + j)%nat)).
      assert (Hi : poisson_binomial (chances cs t) (fun j => phi (a + 1 + j)%nat) = hi).
      { unfold hi. apply poisson_binomial_ext. intro h. f_equal. lia. }
      assert (Lo : poisson_binomial (chances cs t) (fun j => phi (a + 0 + j)%nat) = lo).
      { unfold lo. apply poisson_binomial_ext. intro h. f_equal. lia. }
      assert (Order : lo <= hi).
      { unfold lo, hi. apply poisson_binomial_le; [| intro h; apply Mono; lia]. intros x Ix.
        assert (Rc : forall c, In c cs -> 0 <= snd c <= 1) by (intros; apply Rate; right; auto). clear - Rc Ix. revert t Ix.
        induction cs as [| [e p] cs IH]; intros t Ix; [destruct t; destruct Ix |]. destruct t as [| [c |] t]; cbn [chances] in Ix; [destruct Ix | |].
        - destruct Ix as [<- | Ix]; [apply chance_range; apply (Rc (e, p) (or_introl eq_refl)) |]. apply (IH (fun c I => Rc c (or_intror I)) t Ix).
        - apply (IH (fun c I => Rc c (or_intror I)) t Ix). }
      assert (Balance : rate pi c * Z c <= chance eps pi c * (rate pi c * Z c + rate pi (negb c) * Z (negb c))).
      { unfold chance. apply Rmult_le_reg_r with (exp eps * rate pi c + rate pi (negb c)); [exact D |].
        replace (exp eps * rate pi c / (exp eps * rate pi c + rate pi (negb c)) * (rate pi c * Z c + rate pi (negb c) * Z (negb c)) * (exp eps * rate pi c + rate pi (negb c)))
          with (exp eps * rate pi c * (rate pi c * Z c + rate pi (negb c) * Z (negb c))) by (field; lra).
        assert (X : rate pi c * rate pi (negb c) * Z c <= rate pi c * rate pi (negb c) * (exp eps * Z (negb c)))
          by (apply Rmult_le_compat_l; [apply Rmult_le_pos; apply Rb | apply Ratio]).
        nra. }
      assert (Goal : rate pi c * (hi * Z c) + rate pi (negb c) * (lo * Z (negb c))
        <= (chance eps pi c * hi + (1 - chance eps pi c) * lo) * (rate pi c * Z c + rate pi (negb c) * Z (negb c))).
      { set (A := rate pi c * Z c) in *. set (A' := rate pi (negb c) * Z (negb c)) in *. set (x := chance eps pi c) in *.
        replace (rate pi c * (hi * Z c)) with (hi * A) by (unfold A; ring). replace (rate pi (negb c) * (lo * Z (negb c))) with (lo * A') by (unfold A'; ring).
        assert ((hi - lo) * A <= (hi - lo) * (x * (A + A'))) by (apply Rmult_le_compat_l; lra). lra. }
      destruct c; cbn [negb hit eqb] in *; rewrite Hi, Lo; lra.
    + cbn [chances hit]. rewrite (poisson_binomial_ext (chances cs t) (fun j => phi (a + 0 + j)%nat) (fun j => phi (a + j)%nat)) by (intro; f_equal; lia).
      right. ring.
Qed.

(** The number of guesses may depend on the output, and so may v: a p-value below the bound has at most this probability. *)
Theorem different_canaries (Y : Type) (outputs : list Y) (guess : Y -> ticket) (M : list bool -> Y -> R) (cs : list (R * R)) (v : Y -> nat) (bound : R) :
  (forall c, In c cs -> 0 <= snd c <= 1) -> mechanism (length cs) outputs M ->
  (forall s i y, In s (secrets (length cs)) -> (i < length cs)%nat -> In y outputs -> M s y <= exp (fst (nth i cs (0, 0))) * M (flip i s) y) ->
  (forall y, In y outputs -> length (guess y) = length cs /\ tail_of (chances cs (guess y)) (v y) <= bound) ->
  sum (secrets (length cs)) (fun s => prior cs s * sum outputs (fun y => if (v y <=? right s (guess y))%nat then M s y else 0)) <= bound.
Proof.
  intros Rate HM HP HG.
  assert (Prior : forall cs', (forall c, In c cs' -> 0 <= snd c <= 1) -> (forall s, 0 <= prior cs' s) /\ sum (secrets (length cs')) (prior cs') = 1).
  { induction cs' as [| [e p] cs' IH]; intro Rc; [split; [intro; simpl; lra | simpl; ring] |].
    destruct (IH (fun c I => Rc c (or_intror I))) as [P S]. pose proof (Rc (e, p) (or_introl eq_refl)) as X. simpl in X. split.
    - intros [| b s]; cbn [prior]; [lra |]. apply Rmult_le_pos; [unfold rate; destruct b; lra | apply P].
    - cbn [length]. rewrite sum_secrets. cbn [prior]. rewrite !sum_scale, S. unfold rate. ring. }
  destruct (Prior cs Rate) as [P0 P1].
  rewrite (sum_ext _ _ (fun s => sum outputs (fun y => prior cs s * M s y * (if (v y <=? 0 + right s (guess y))%nat then 1 else 0)))).
  2:{ intros s _. rewrite <- sum_scale. apply sum_ext. intros y _. simpl. destruct (v y <=? _)%nat; ring. }
  rewrite sum_swap. apply Rle_trans with (sum outputs (fun y => bound * sum (secrets (length cs)) (fun s => prior cs s * M s y))).
  - apply sum_le. intros y J. destruct (HG y J) as [L T].
    eapply Rle_trans; [apply (posterior (fun j => if (v y <=? j)%nat then 1 else 0) cs (guess y) (fun s => M s y) 0); auto |].
    + intros j j' Lj. destruct (Nat.leb_spec (v y) j), (Nat.leb_spec (v y) j'); try lra; lia.
    + apply Rmult_le_compat_r; [| exact T]. apply sum_pos. intros s I. destruct (HM s I) as [N _]. apply Rmult_le_pos; [apply P0 | apply N; exact J].
  - rewrite sum_scale, sum_swap. rewrite (sum_ext _ _ (prior cs)); [rewrite P1; lra |].
    intros s I. rewrite sum_scale. destruct (HM s I) as [_ ->]. ring.
Qed.

(** With rates 1/2 and a guess about every canary, independent randomized responses attain the bound. *)
Lemma chance_half eps c : chance eps (1/2) c = q_of eps.
Proof. unfold chance, q_of, rate. pose proof (exp_pos eps). destruct c; simpl; field; lra. Qed.
Fixpoint responses (es : list R) (s t : list bool) : R :=
  match es, s, t with e :: es', b :: s', c :: t' => (if eqb b c then q_of e else 1 - q_of e) * responses es' s' t' | _, _, _ => 1 end.
Lemma q_of_range e : 0 <= e -> 0 < 1 - q_of e /\ 1 - q_of e <= q_of e /\ q_of e = exp e * (1 - q_of e).
Proof.
  intro H. pose proof (exp_ge_1 e H) as X. unfold q_of. assert (Y : 1 - exp e / (1 + exp e) = / (1 + exp e)) by (field; lra). rewrite Y.
  assert (0 < / (1 + exp e)) by (apply Rinv_0_lt_compat; lra). unfold Rdiv. split; [lra | split; nra].
Qed.
Lemma responses_nonneg es : (forall e, In e es -> 0 <= e) -> forall s t, 0 <= responses es s t.
Proof.
  induction es as [| e es IH]; intros H [| b s] [| c t]; simpl; try lra. pose proof (q_of_range e (H e (or_introl eq_refl))) as [A [A' _]].
  apply Rmult_le_pos; [destruct (eqb b c); lra | apply IH; intros; apply H; right; auto].
Qed.
Lemma responses_private es : (forall e, In e es -> 0 <= e) -> forall s t i, responses es s t <= exp (nth i es 0) * responses es (flip i s) t.
Proof.
  induction es as [| e es IH]; intros H s t i.
  - destruct i; simpl nth; rewrite exp_0; simpl; lra.
  - assert (H' : forall e', In e' es -> 0 <= e') by (intros; apply H; right; auto).
    assert (One : forall j, 1 <= exp (nth j (e :: es) 0)).
    { intro j. apply exp_ge_1. destruct (Nat.lt_ge_cases j (length (e :: es))) as [L | L]; [apply H, nth_In; exact L | rewrite nth_overflow by exact L; lra]. }
    destruct s as [| b s]; [destruct i; cbn [flip responses]; rewrite Rmult_1_r; apply One |].
    destruct t as [| c t]; [destruct i; cbn [flip responses]; rewrite Rmult_1_r; apply One |].
    pose proof (q_of_range e (H e (or_introl eq_refl))) as [A [A' A'']]. destruct i as [| i]; cbn [flip responses nth].
    + rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [apply responses_nonneg; exact H' |]. pose proof (exp_ge_1 e (H e (or_introl eq_refl))).
      destruct b, c; simpl; try lra; nra.
    + rewrite <- Rmult_assoc, (Rmult_comm (exp _)), Rmult_assoc. apply Rmult_le_compat_l; [destruct (eqb b c); lra | apply IH; exact H'].
Qed.
Lemma responses_sum : forall es s (phi : nat -> R), length s = length es ->
  sum (secrets (length es)) (fun t => responses es s t * phi (right s (map Some t))) = poisson_binomial (map q_of es) phi.
Proof.
  induction es as [| e es IH]; intros [| b s] phi L; simpl in L; try lia; [simpl; ring |]. injection L as L.
  cbn [length map poisson_binomial]. rewrite sum_secrets. rewrite <- (IH s phi L), <- (IH s (fun h => phi (S h)) L), <- !sum_scale, <- !sum_plus.
  apply sum_ext. intros t _. destruct b; cbn [responses right map hit eqb Nat.add]; ring.
Qed.
Theorem different_canaries_attained (es : list R) (v : nat) : (forall e, In e es -> 0 <= e) ->
  mechanism (length es) (secrets (length es)) (responses es) /\
  (forall s i t, responses es s t <= exp (nth i es 0) * responses es (flip i s) t) /\
  guess_rule (length es) (length es) (secrets (length es)) (map Some) /\
  success (length es) (secrets (length es)) (map Some) (responses es) v = tail_of (map q_of es) v.
Proof.
  intro H. split; [| split; [| split]].
  - intros s I. split; [intros; apply responses_nonneg; exact H |]. apply secrets_length in I.
    rewrite (sum_ext _ _ (fun t => responses es s t * 1)) by (intros; ring). rewrite (responses_sum es s (fun _ => 1) I). apply poisson_binomial_const.
  - intros. apply responses_private. exact H.
  - intros t I. apply secrets_length in I. rewrite map_length. split; [exact I |]. rewrite <- I. clear I. induction t; simpl; congruence.
  - unfold success. rewrite (sum_ext _ _ (fun _ => tail_of (map q_of es) v)); [rewrite sum_secrets_const; field; apply pow_nonzero; lra |].
    intros s I. apply secrets_length in I. unfold tail_of. rewrite <- (responses_sum es s _ I). apply sum_ext. intros t _. destruct (v <=? _)%nat; ring.
Qed.
Corollary different_canaries_half (Y : Type) (outputs : list Y) (guess : Y -> ticket) (M : list bool -> Y -> R) (es : list R) (v : nat) :
  mechanism (length es) outputs M -> guess_rule (length es) (length es) outputs guess ->
  (forall s i y, In s (secrets (length es)) -> (i < length es)%nat -> In y outputs -> M s y <= exp (nth i es 0) * M (flip i s) y) ->
  success (length es) outputs guess M v <= tail_of (map q_of es) v.
Proof.
  intros HM HG HP. set (cs := map (fun e => (e, 1/2)) es). assert (L : length cs = length es) by apply map_length.
  assert (Ch : forall es t, length t = length es -> guesses t = length t -> chances (map (fun e => (e, 1/2)) es) t = map q_of es).
  { clear. assert (Few : forall t, (guesses t <= length t)%nat) by (induction t as [| [c |] t IH]; simpl; lia).
    induction es as [| e es IH]; intros [| [c |] t] L G; simpl in L, G; try lia; [reflexivity | | specialize (Few t); lia].
    cbn [map chances]. rewrite chance_half, IH by lia. reflexivity. }
  assert (Pr : forall es s, length s = length es -> prior (map (fun e => (e, 1/2)) es) s = / 2 ^ length es).
  { clear. induction es as [| e es IH]; intros [| b s] L; simpl in L; try lia; [simpl; field |].
    cbn [map prior length]. rewrite IH by lia. unfold rate. assert (2 ^ length es <> 0) by (apply pow_nonzero; lra). destruct b; simpl pow; field; lra. }
  pose proof (different_canaries Y outputs guess M cs (fun _ => v) (tail_of (map q_of es) v)) as D. rewrite L in D.
  eapply Rle_trans; [| apply D].
  - right. unfold success. rewrite <- sum_scale. apply sum_ext. intros s I. apply secrets_length in I. unfold cs. rewrite Pr by exact I. reflexivity.
  - intros c I. apply in_map_iff in I as [e [<- _]]. simpl. lra.
  - exact HM.
  - intros s i y I Li J. replace (fst (nth i cs (0, 0))) with (nth i es 0); [apply HP; auto |].
    unfold cs. clear. revert i. induction es; intros [| i]; simpl; auto.
  - intros y J. destruct (HG y J) as [G1 G2]. split; [exact G1 |]. unfold cs. rewrite Ch by congruence. lra.
Qed.
(* one walk through all proofs, which takes as long as that through one of them *)
Definition statements := (one_run_audit, one_run_at_most, one_run_p_value, any_profile, page_example, different_canaries, different_canaries_half, different_canaries_attained).
Print Assumptions statements.

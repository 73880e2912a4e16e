// What backends/typeprobe.py asks of the compiler. The templates kernelskill_count, kernelskill_result
// and kernelskill_parameter are never defined: each is instantiated once to be refused, and the numbers
// in the refusal are the answer. Before this file stand `kernelskill_element<T>` (8 and up for a known
// element type, 0 for any other).
//
// It stands behind the user's text, where any short name may be a macro: no name here is one that people use.
//
// A parameter's number: 0 unknown; 1 a stream; else the element's number, plus 2 for a pointer, plus 4
// for a pointer to const.

template <class ks_t, bool ks_is_enum> struct kernelskill_underlying { using ks_type = ks_t; };
template <class ks_t> struct kernelskill_underlying<ks_t, true> { using ks_type = __underlying_type(ks_t); };

template <class ks_t> struct kernelskill_plain {
  static const int ks_value = kernelskill_element<typename kernelskill_underlying<ks_t, __is_enum(ks_t)>::ks_type>::ks_value;
};

template <class ks_t> struct kernelskill_target { static const int ks_element = kernelskill_plain<ks_t>::ks_value, ks_is_const = 0; };
template <class ks_t> struct kernelskill_target<const ks_t> {
  static const int ks_element = kernelskill_plain<ks_t>::ks_value, ks_is_const = 4;
};
template <class ks_t> struct kernelskill_target<volatile ks_t> : kernelskill_target<ks_t> {};
template <class ks_t> struct kernelskill_target<const volatile ks_t> : kernelskill_target<const ks_t> {};

template <class ks_t> struct kernelskill_code { static const int ks_value = kernelskill_plain<ks_t>::ks_value; };
template <class ks_t> struct kernelskill_code<ks_t*> {
  static const int ks_element = kernelskill_target<ks_t>::ks_element;
  static const int ks_value = ks_element == 0 ? 0 : ks_element + 2 + kernelskill_target<ks_t>::ks_is_const;
};
template <> struct kernelskill_code<CUstream_st*> { static const int ks_value = 1; };

template <class ks_r> struct kernelskill_result_code { static const int ks_value = -1; };
template <> struct kernelskill_result_code<void> { static const int ks_value = 0; };
template <> struct kernelskill_result_code<int> { static const int ks_value = 1; };
template <> struct kernelskill_result_code<cudaError_t> { static const int ks_value = 2; };

template <class... ks_p> struct kernelskill_list {};
template <int ks_n, class ks_l> struct kernelskill_nth;
template <class ks_h, class... ks_t> struct kernelskill_nth<0, kernelskill_list<ks_h, ks_t...>> { using ks_type = ks_h; };
template <int ks_n, class ks_h, class... ks_t> struct kernelskill_nth<ks_n, kernelskill_list<ks_h, ks_t...>> {
  using ks_type = typename kernelskill_nth<ks_n - 1, kernelskill_list<ks_t...>>::ks_type;
};

template <class ks_f> struct kernelskill_function;
template <class ks_r, class... ks_p> struct kernelskill_function<ks_r(ks_p...)> {
  using ks_result = ks_r;
  using ks_list = kernelskill_list<ks_p...>;
  static const int ks_count = sizeof...(ks_p);
};
#if defined(__cpp_noexcept_function_type)
template <class ks_r, class... ks_p> struct kernelskill_function<ks_r(ks_p...) noexcept> : kernelskill_function<ks_r(ks_p...)> {};
#endif

template <int ks_n, class ks_f> struct kernelskill_count;
template <int ks_c> struct kernelskill_result;
template <int ks_n, int ks_c> struct kernelskill_parameter;

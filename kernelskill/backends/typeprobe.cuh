// What backends/typeprobe.py asks of the compiler. The templates kernelskill_count, kernelskill_result
// and kernelskill_parameter are never defined: each is instantiated once to be refused, and the numbers
// in the refusal are the answer. Before this file stand `kernelskill_element<T>` (8 and up for a known
// element type, 0 for any other).
//
// A parameter's number: 0 unknown; 1 a stream; else the element's number, plus 2 for a pointer, plus 4
// for a pointer to const.

template <class T, bool IsEnum> struct kernelskill_underlying { using type = T; };
template <class T> struct kernelskill_underlying<T, true> { using type = __underlying_type(T); };

template <class T> struct kernelskill_plain {
  static const int value = kernelskill_element<typename kernelskill_underlying<T, __is_enum(T)>::type>::value;
};

template <class T> struct kernelskill_target { static const int element = kernelskill_plain<T>::value, is_const = 0; };
template <class T> struct kernelskill_target<const T> {
  static const int element = kernelskill_plain<T>::value, is_const = 4;
};
template <class T> struct kernelskill_target<volatile T> : kernelskill_target<T> {};
template <class T> struct kernelskill_target<const volatile T> : kernelskill_target<const T> {};

template <class T> struct kernelskill_code { static const int value = kernelskill_plain<T>::value; };
template <class T> struct kernelskill_code<T*> {
  static const int element = kernelskill_target<T>::element;
  static const int value = element == 0 ? 0 : element + 2 + kernelskill_target<T>::is_const;
};
template <> struct kernelskill_code<CUstream_st*> { static const int value = 1; };

template <class R> struct kernelskill_result_code { static const int value = -1; };
template <> struct kernelskill_result_code<void> { static const int value = 0; };
template <> struct kernelskill_result_code<int> { static const int value = 1; };
template <> struct kernelskill_result_code<cudaError_t> { static const int value = 2; };

template <class... P> struct kernelskill_list {};
template <int N, class L> struct kernelskill_nth;
template <class H, class... T> struct kernelskill_nth<0, kernelskill_list<H, T...>> { using type = H; };
template <int N, class H, class... T> struct kernelskill_nth<N, kernelskill_list<H, T...>> {
  using type = typename kernelskill_nth<N - 1, kernelskill_list<T...>>::type;
};

template <class F> struct kernelskill_function;
template <class R, class... P> struct kernelskill_function<R(P...)> {
  using result = R;
  using list = kernelskill_list<P...>;
  static const int count = sizeof...(P);
};
#if defined(__cpp_noexcept_function_type)
template <class R, class... P> struct kernelskill_function<R(P...) noexcept> : kernelskill_function<R(P...)> {};
#endif

template <int N, class F> struct kernelskill_count;
template <int C> struct kernelskill_result;
template <int N, int C> struct kernelskill_parameter;
